// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Exceptions through frames with destructors, virtual calls and templates, for a tracer that
// follows it instruction by instruction from the first breakpoint to the second.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))
#define MARK() __asm__ volatile("int3" : : : "memory")

static volatile unsigned long sink;

struct guard {
	std::string text;
	explicit guard(const char *t) : text(t) {}
	NOINLINE ~guard() { sink = sink + text.size(); }
};

struct shape {
	virtual ~shape() = default;
	virtual int area(int n) const = 0;
};

struct square : shape {
	NOINLINE int area(int n) const override
	{
		guard g("a text that is too long to be kept inside of the object");

		if (n == 0)
			throw std::runtime_error(g.text);
		return n * n;
	}
};

template <int N> NOINLINE int nested(const shape &s, int n)
{
	guard g("inner");

	return nested<N - 1>(s, n) + static_cast<int>(g.text.size());
}

template <> NOINLINE int nested<0>(const shape &s, int n)
{
	return s.area(n);
}

static NOINLINE int through_function(const shape &s, int n)
{
	std::function<int(int)> f = [&s](int k) { return nested<5>(s, k); };

	return f(n);
}

int main()
{
	std::unique_ptr<shape> s(new square);
	int caught = 0;

	try {
		through_function(*s, 0);	// binds symbols and reads tables for the first time
	} catch (const std::exception &) {
		caught++;
	}
	MARK();
	try {
		sink = sink + static_cast<unsigned long>(through_function(*s, 3));
		through_function(*s, 0);
	} catch (const std::exception &e) {
		caught += *e.what() != 0;
	}
	MARK();
	return caught == 2 ? 0 : 1;
}

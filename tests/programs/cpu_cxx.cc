// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * C++ at work: exceptions that cross many frames, virtual calls through several bases, templates
 * that recurse deeply, and the standard library calling back. usage: cpu_cxx SECONDS (of CPU time)
 */
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

static volatile std::uint64_t sink;

static double cpu_seconds()
{
	timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}

/* --- exceptions: thrown deep, changed on the way, with destructors that work --------------- */

struct Guard {
	std::string text;
	explicit Guard(int n) : text(std::size_t(n % 40) + 20, 'x') {}
	NOINLINE ~Guard()
	{
		for (char c : text)
			sink = sink + std::uint64_t(c);
	}
};

struct Deep : std::runtime_error {
	int depth;
	explicit Deep(int d) : std::runtime_error("deep"), depth(d) {}
};

NOINLINE static int dig(int depth)
{
	Guard guard(depth);

	if (!depth)
		throw Deep(depth);
	try {
		return dig(depth - 1) + 1;
	} catch (Deep &e) {
		e.depth++;
		if (depth % 5 == 0)
			throw std::out_of_range(guard.text);
		throw;
	} catch (const std::exception &e) {
		if (depth % 7 == 0)
			throw Deep(depth);
		throw;
	}
}

NOINLINE static void exceptions()
{
	for (int i = 0; i < 2; i++) {
		try {
			dig(20 + i);
		} catch (const std::exception &e) {
			sink = sink + std::uint64_t(e.what()[0]);
		}
	}
}

/* --- virtual calls: several bases, virtual inheritance, thunks ----------------------------- */

struct Shape {
	virtual ~Shape() = default;
	virtual std::uint64_t area(unsigned depth) const = 0;
};
struct Named {
	virtual ~Named() = default;
	virtual std::uint64_t hash(unsigned depth) const = 0;
};
struct Square : virtual Shape, Named {
	std::vector<std::unique_ptr<Named>> inner;
	NOINLINE std::uint64_t area(unsigned depth) const override
	{
		std::uint64_t sum = depth;

		for (const auto &n : inner)
			sum += n->hash(depth + 1);
		return sum;
	}
	NOINLINE std::uint64_t hash(unsigned depth) const override
	{
		return area(depth) * 31 + std::hash<std::string>()(std::string(depth + 16, 'h'));
	}
};

static std::unique_ptr<Square> build(unsigned depth)
{
	auto s = std::make_unique<Square>();

	for (unsigned i = 0; depth && i < 3; i++)
		s->inner.push_back(build(depth - 1));
	return s;
}

NOINLINE static void virtual_calls(const Shape &shape)
{
	sink = sink + shape.area(0);
}

/* --- templates: one function for each depth, with a frame that differs --------------------- */

template <unsigned N> struct Tower {
	NOINLINE static std::uint64_t climb(unsigned (*f)(unsigned), std::array<char, N> room)
	{
		std::array<char, N + 1> more{};

		std::copy(room.begin(), room.end(), more.begin());
		more[N] = char(f(N));
		return Tower<N + 1>::climb(f, more) + std::uint64_t(more[N / 2]);
	}
};
template <> struct Tower<48> {
	NOINLINE static std::uint64_t climb(unsigned (*f)(unsigned), std::array<char, 48> room)
	{
		return std::uint64_t(f(48)) + std::uint64_t(room[40]);
	}
};

NOINLINE static void templates()
{
	std::variant<int, std::string, std::vector<int>> v = std::vector<int>(100, 3);

	for (int i = 0; i < 20; i++) {
		sink = sink + Tower<1>::climb([](unsigned n) { return n * 7; }, {});
		sink = sink + std::visit([](auto &x) { return sizeof(x); }, v);
	}
}

/* --- the library: comparison and hashing called back from it ------------------------------- */

NOINLINE static void library()
{
	std::vector<std::tuple<std::string, int>> rows;
	std::unordered_map<std::string, int> counts;
	std::map<int, std::function<int(int)>> calls;

	for (int i = 0; i < 300; i++)
		rows.emplace_back("row" + std::to_string(i * 7919 % 300), i);
	std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) {
		return std::get<0>(a) < std::get<0>(b);
	});
	for (const auto &row : rows) {
		counts[std::get<0>(row).substr(3, 1)]++;
		calls[std::get<1>(row) % 17] = [&row](int x) { return x + std::get<1>(row); };
	}
	for (auto &call : calls)
		sink = sink + std::uint64_t(call.second(1)) + counts.size();
}

static void work(double seconds)
{
	auto shape = build(6);

	while (cpu_seconds() < seconds) {
		exceptions();
		virtual_calls(*shape);
		templates();
		library();
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 5;
	std::thread other(work, seconds / 2);

	work(seconds / 2);
	other.join();
	printf("done\n");
	return 0;
}

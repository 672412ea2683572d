package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

const (
	// The timeouts of the functions. With relaxed, no lease ends during a scenario.
	relaxed = 30 * time.Second
	short   = 5 * time.Second
	brief   = 3 * time.Second

	// afterLease is the time between a function's deadline and a retry that must run. The leases
	// of all peers end within it.
	afterLease = 4 * time.Second

	// skew is how far one clock is ahead of the others in the scenarios about clocks.
	skew = 5 * time.Second
)

// payment is the request that most scenarios send.
var payment = driver.Request{Path: "/payments", Caller: "alice", Key: "0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b11", Body: `{"amount":100,"currency":"EUR"}`}

var (
	toRefunds    = with(func(r *driver.Request) { r.Path = "/refunds" })
	ofBob        = with(func(r *driver.Request) { r.Caller = "bob" })
	otherPayload = with(func(r *driver.Request) { r.Body = `{"amount":200,"currency":"EUR"}` })
	rewritten    = with(func(r *driver.Request) { r.Body = `{ "currency": "EUR", "amount": 100 }` })
	// Two integers that a 64-bit float can't tell apart.
	largeNumber     = with(func(r *driver.Request) { r.Body = `{"amount":9007199254740993}` })
	nextLargeNumber = with(func(r *driver.Request) { r.Body = `{"amount":9007199254740992}` })
	keyless         = with(func(r *driver.Request) { r.Key = "" })
)

func with(change func(*driver.Request)) driver.Request {
	r := payment
	change(&r)
	return r
}

// scenarios has all scenarios, in the order of the page.
var scenarios = []scenario{
	{
		name:  "retry",
		title: "A retry",
		story: "A client sends a request, gets no answer, and sends it again.",
		rule:  "The handler runs once. The retry receives the first answer: status, header and body.",
		play:  countRequests,
		holds: func(o seen) bool { return o.runs == 1 && o.from("retry", "first") },
	},
	{
		name:  "status-500",
		title: "The handler answers 500",
		story: "The handler answers 500, because a service behind it is down. The client sends the request again.",
		rule:  "The handler runs again, and the retry receives the new answer: the client isn't stuck with a 500.",
		play:  twice(payment, driver.Script{Status: 500}, payment),
		holds: func(o seen) bool { return o.runs == 2 && o.from("retry", "retry") },
	},
	{
		name:  "error",
		title: "The handler fails with an error",
		story: "The handler returns or raises an error. The client sends the request again.",
		rule:  "The handler runs again, and the retry receives the new answer.",
		play:  twice(payment, driver.Script{Fail: true}, payment),
		holds: func(o seen) bool { return o.runs == 2 && o.from("retry", "retry") },
	},
	{
		name:  "other-path",
		title: "The same key on another path",
		story: "A client uses one key for POST /payments and then for POST /refunds.",
		rule:  "The second request receives its own answer, or is refused. It never receives the payment's answer.",
		play:  then(payment, "refund", toRefunds),
		holds: func(o seen) bool { return o.from("refund", "refund") || o.refused("refund") },
	},
	{
		name:  "other-caller",
		title: "Another caller with the same key",
		story: "Alice sends a request. Bob sends the same request with the same key.",
		rule:  "Bob receives his own answer, or is refused. He never receives Alice's answer.",
		play:  then(payment, "bob", ofBob),
		holds: func(o seen) bool { return o.from("bob", "bob") || o.refused("bob") },
	},
	{
		name:  "other-payload",
		title: "Another payload under the same key",
		story: "A client sends an amount of 100, and then an amount of 200 with the same key.",
		rule:  "The second request is refused, and the handler does not run for it.",
		play:  then(payment, "changed", otherPayload),
		holds: func(o seen) bool { return o.runs == 1 && o.refused("changed") },
	},
	{
		name:  "rewritten",
		title: "The same JSON, written differently",
		story: "The retry's JSON has the same values, with its members in another order and other white space.",
		rule:  "The handler runs once, and the retry receives the first answer.",
		play:  twice(payment, driver.Script{}, rewritten),
		holds: func(o seen) bool { return o.runs == 1 && o.from("retry", "first") },
	},
	{
		name:  "large-numbers",
		title: "Two large numbers that differ by one",
		story: "A client sends an amount of 9007199254740993, and then 9007199254740992 with the same key. As 64-bit floats they are equal.",
		rule:  "The second request is refused, and the handler does not run for it.",
		play:  then(largeNumber, "changed", nextLargeNumber),
		holds: func(o seen) bool { return o.runs == 1 && o.refused("changed") },
	},
	{
		name:  "no-key",
		title: "Requests without a key",
		story: "A client sends the same request twice, without a key: it may want two payments.",
		rule:  "Neither request receives the other's answer: each runs or is refused.",
		play:  twice(keyless, driver.Script{}, keyless),
		holds: func(o seen) bool { return o.from("retry", "retry") || o.refused("retry") },
	},
	{
		name:  "mutation",
		title: "A handler that changes its input",
		story: "The handler empties the headers of its event and overwrites the caller's name. The client sends the request again.",
		rule:  "The handler runs once, and the retry receives the first answer.",
		play:  twice(payment, driver.Script{Mutate: true}, payment),
		holds: func(o seen) bool { return o.runs == 1 && o.from("retry", "first") },
	},
	{
		name:  "binary",
		title: "A binary answer",
		story: "The handler answers with all 256 byte values, declared as binary. The client sends the request again.",
		rule:  "The handler runs once, and the retry receives the same bytes.",
		play:  twice(payment, driver.Script{Body: allBytes(), Binary: true}, payment),
		holds: func(o seen) bool { return o.runs == 1 && o.from("first", "first") && o.from("retry", "first") },
	},
	{
		name:  "large-answer",
		title: "An answer of 500 KB",
		story: "The handler answers with 500 KB of text that hardly compresses. An item of DynamoDB holds 400 KB.",
		rule:  "The handler runs once. The first caller receives its answer, and the retry receives the same.",
		play:  twice(payment, driver.Script{Body: largeText(500_000)}, payment),
		holds: func(o seen) bool { return o.runs == 1 && o.from("first", "first") && o.from("retry", "first") },
	},
	{
		name:  "duplicate",
		title: "A duplicate while the first attempt runs",
		story: "The same request comes again while the handler runs for the first one.",
		rule:  "The handler runs once. The duplicate is refused, or receives the first answer.",
		play:  duplicate(function{timeout: relaxed}),
		holds: func(o seen) bool { return o.runs == 1 && (o.refused("duplicate") || o.from("duplicate", "first")) },
	},
	{
		name:  "waiting",
		title: "A duplicate that waits",
		story: "The same request comes again while the handler runs for the first one, and the function is set to let duplicates wait.",
		rule:  "The handler runs once, and the duplicate receives the first answer.",
		needs: []need{needsWait},
		play:  duplicate(function{timeout: relaxed, wait: true}),
		holds: func(o seen) bool { return o.runs == 1 && o.from("duplicate", "first") },
	},
	{
		name:  "crowd",
		title: "50 concurrent requests in each of two processes",
		story: "Two instances of the function receive the same request 50 times each, all at once. Then comes a retry.",
		rule:  "The handler runs once. Every caller receives its answer or is refused, and the retry receives it.",
		play: func(s *stage) error {
			a, b, err := s.startTwo(function{timeout: relaxed}, function{timeout: relaxed})
			if err != nil {
				return err
			}
			return errors.Join(s.crowd("all at once", 50, payment, relaxed, a, b), s.do("retry", b, payment, relaxed, driver.Script{}))
		},
		holds: func(o seen) bool {
			return o.runs == 1 && o.from("retry", "all at once") &&
				o.each("all at once", func(a received) bool { return a.from == "all at once" || a.refused })
		},
	},
	{
		name:  "crash",
		title: "A crash in mid-flight, and a retry at once",
		story: "The process dies while the handler runs, long before its deadline. A retry comes at once to another instance, which can't know that the process is dead.",
		rule:  "The handler does not run again yet: the retry is refused.",
		play: func(s *stage) error {
			b, err := s.dieRunning(relaxed)
			if err != nil {
				return err
			}
			return s.do("retry", b, payment, relaxed, driver.Script{})
		},
		holds: func(o seen) bool { return o.runs == 1 && o.refused("retry") },
	},
	{
		name:  "timeout",
		title: "A timeout, and a retry after it",
		story: "The function's timeout of 3 s ends the process while the handler runs. A retry comes 4 s later.",
		rule:  "The handler runs again, and the retry receives its answer: the key isn't blocked for longer.",
		timed: true,
		play: func(s *stage) error {
			began := time.Now()
			b, err := s.dieRunning(brief)
			if err != nil {
				return err
			}
			return errors.Join(s.sleep(time.Until(began.Add(brief+afterLease))), s.do("retry", b, payment, brief, driver.Script{}))
		},
		holds: func(o seen) bool { return o.runs == 2 && o.from("retry", "retry") },
	},
	{
		name:  "no-time",
		title: "No time left",
		story: "A request reaches the guard at the invocation's deadline, because a freeze or a slow start has used up the time: 0 ms are left. Lambda ends the process. A retry comes 4 s later.",
		rule:  "The handler does not begin what it can't finish: it runs for the retry alone, which receives its answer.",
		timed: true,
		play: func(s *stage) error {
			a, b, err := s.startTwo(function{timeout: brief}, function{timeout: brief})
			if err != nil {
				return err
			}
			first, err := s.send("first", a, payment, 0, driver.Script{Hold: true})
			if err != nil {
				return err
			}
			ran, err := first.waitRun()
			if err == nil && !ran {
				err = s.await(first)
			}
			return errors.Join(err, a.kill(), s.sleep(afterLease), s.do("retry", b, payment, brief, driver.Script{}))
		},
		holds: func(o seen) bool { return o.runs == 1 && o.from("retry", "retry") },
	},
	{
		name:  "late-success",
		title: "An attempt that outlives its lease, and completes late",
		story: "The first process is stopped while the handler runs. After its deadline a retry runs in another instance and is answered. Then the first process goes on and completes. Then the client asks again.",
		rule:  "The last request receives what the retry received: an answer that was given doesn't change.",
		timed: true,
		needs: []need{needsLease},
		play:  late(driver.Script{Hold: true}),
		holds: func(o seen) bool { return o.runs == 2 && o.from("retry", "retry") && o.from("last", "retry") },
	},
	{
		name:  "late-failure",
		title: "An attempt that outlives its lease, and fails late",
		story: "The same, but the first process goes on and fails.",
		rule:  "The last request receives what the retry received, and the handler does not run for it.",
		timed: true,
		needs: []need{needsLease},
		play:  late(driver.Script{Hold: true, Fail: true}),
		holds: func(o seen) bool { return o.runs == 2 && o.from("retry", "retry") && o.from("last", "retry") },
	},
	{
		name:  "clock",
		title: "A clock that is 5 s ahead, 4.5 s before the deadline",
		story: "The handler runs, and its invocation has 4.5 s left. The same request reaches another instance, whose clock is 5 s ahead.",
		rule:  "The handler does not run at the same time in both: it runs once.",
		timed: true,
		needs: []need{needsLease},
		play:  ahead(4500 * time.Millisecond),
		holds: func(o seen) bool { return o.runs == 1 },
	},
	{
		name:  "clock-late",
		title: "A clock that is 5 s ahead, 2 s before the deadline",
		story: "The same, with 2 s left.",
		rule:  "The handler does not run at the same time in both: it runs once.",
		timed: true,
		needs: []need{needsLease},
		play:  ahead(2 * time.Second),
		holds: func(o seen) bool { return o.runs == 1 },
	},
	{
		name:  "lost-lock-reply",
		title: "The reply to the lock is lost",
		story: "DynamoDB carries out the write that locks the key, but its reply is lost. The SDK sends the write again.",
		rule:  "The handler runs once, and the caller receives its answer.",
		needs: []need{needsStore},
		play:  lock((*faults).once, proxy.LoseReply),
		holds: func(o seen) bool { return o.runs == 1 && o.from("first", "first") && o.from("retry", "first") },
	},
	{
		name:  "lost-completion-reply",
		title: "The reply to the completion is lost",
		story: "DynamoDB carries out the write that stores the answer, but its reply is lost. The SDK sends the write again.",
		rule:  "The handler runs once. The first caller receives its answer, and the retry receives the same.",
		needs: []need{needsStore},
		play:  completion(relaxed, (*faults).once, proxy.LoseReply),
		holds: func(o seen) bool { return o.runs == 1 && o.from("first", "first") && o.from("retry", "first") },
	},
	{
		name:  "failed-completion",
		title: "A completion that fails after the effect",
		story: "The handler has run with 5 s left, but DynamoDB refuses every write that would store the answer. When the caller has its answer, the table is well again, and a retry comes at once.",
		rule:  "The handler does not run for the retry.",
		needs: []need{needsStore},
		play:  completion(short, (*faults).every, refuse),
		holds: func(o seen) bool { return o.runs == 1 },
	},
	{
		name:  "throttled",
		title: "A throttled table",
		story: "DynamoDB throttles every write of the first request. Then the table is well again, and a retry comes.",
		rule:  "The handler does not run without a lock: the first request is refused. The retry runs and receives its answer.",
		needs: []need{needsStore},
		play:  lock((*faults).every, proxy.Throttle),
		holds: func(o seen) bool { return o.runs == 1 && o.refused("first") && o.from("retry", "retry") },
	},
	{
		name:  "secret",
		title: "A fingerprint secret that is rotated between two attempts",
		story: "The function signs its fingerprints with a secret. Between a request and its retry, a deployment puts a new secret before the old one.",
		rule:  "The handler runs once, and the retry receives the first answer.",
		needs: []need{needsSecret},
		play: func(s *stage) error {
			const before, after = "the-old-secret-of-2026", "the-new-secret-of-2026"
			a, b, err := s.startTwo(function{timeout: relaxed, secrets: before}, function{timeout: relaxed, secrets: after + "," + before})
			if err != nil {
				return err
			}
			return errors.Join(s.do("first", a, payment, relaxed, driver.Script{}), s.do("retry", b, payment, relaxed, driver.Script{}))
		},
		holds: func(o seen) bool { return o.runs == 1 && o.from("retry", "first") },
	},
	{
		name:  "own-write",
		title: "The handler's own write, and a crash before the completion",
		story: "The handler adds 1 to a balance in DynamoDB, and returns. The process dies before the write that stores the answer arrives. A retry comes after the lease.",
		rule:  "The balance is 1 after the retry has its answer.",
		timed: true,
		needs: []need{needsStore},
		play:  crashBeforeCompletion,
		holds: func(o seen) bool {
			return o.from("retry", "retry") && len(o.notes) == 1 && o.notes[0] == balanceIs("1")
		},
	},
}

func balanceIs(n string) string { return "the balance is " + n }

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// largeText returns n bytes of text. Gzip shrinks the text by about a quarter.
func largeText(n int) []byte {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	random := rand.New(rand.NewPCG(1, 2))
	return bytes.Map(func(rune) rune { return rune(letters[random.IntN(len(letters))]) }, make([]byte, n))
}

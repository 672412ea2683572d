package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// trouble says what goes wrong with a payment: for each place and kind of fault, the number of
// first attempts or calls that it hits.
type trouble struct {
	fails, hangs, dies                  int // payments function: answers 500, runs into its timeout, or kills itself before the commit
	receiptFails, receiptDies           int // receipts function, after its message was sent and before anything is committed
	notificationFails, notificationDies int // notifications function, after the mailer was called and before that is recorded
	mailFails, mailLoses                int // mailer: answers 503, or sends the mail and no answer
}

// attempts returns how many attempts of the payments function fail.
func (t trouble) attempts() int { return max(t.fails, t.hangs, t.dies) }

// receiptAttempts returns how many attempts of the receipts function fail. Each of them has sent
// its message.
func (t trouble) receiptAttempts() int { return max(t.receiptFails, t.receiptDies) }

// notificationAttempts returns the minimum number of attempts of the notifications function that
// fail. Each of them has called the mailer.
func (t trouble) notificationAttempts() int { return max(t.notificationFails, t.notificationDies) }

// mailCalls returns the minimum number of calls to the mailer, if at most one attempt of the
// notifications function is made to fail. One attempt calls the mailer up to three times
// (mailerCalls in functions/notifications), and is made to fail only after a call has succeeded.
func (t trouble) mailCalls() int {
	calls := 1 + max(t.mailFails, t.mailLoses)
	if calls <= 3 {
		calls += t.notificationAttempts()
	}
	return calls
}

// order returns a request for a payment of this amount, with the headers and the reference that
// cause the trouble.
func (t trouble) order(user, key string, cents int) request {
	words := []string{key}
	for _, w := range []struct {
		word  string
		times int
	}{
		{"receipt-fails", t.receiptFails}, {"receipt-dies", t.receiptDies},
		{"notification-fails", t.notificationFails}, {"notification-dies", t.notificationDies},
		{"mail-fails", t.mailFails}, {"mail-loses", t.mailLoses},
	} {
		if w.times > 0 {
			words = append(words, fmt.Sprintf("%s=%d", w.word, w.times))
		}
	}
	r := order(user, key, fmt.Sprintf(`{"amount":%d,"currency":"EUR","reference":%q}`, cents, strings.Join(words, " ")))
	for header, times := range map[string]int{"X-Demo-Fail-Attempts": t.fails, "X-Demo-Hang-Attempts": t.hangs, "X-Demo-Die-Attempts": t.dies} {
		if times > 0 {
			r = r.with(header, strconv.Itoa(times))
		}
	}
	return r
}

// anyTrouble returns a random trouble. At each place, it chooses no fault with a probability of
// one half.
func anyTrouble(random *rand.Rand) trouble {
	var t trouble
	one := func(kinds ...*int) {
		if n := random.IntN(2 * len(kinds)); n < len(kinds) {
			*kinds[n] = 1
		}
	}
	one(&t.fails, &t.hangs, &t.dies)
	one(&t.receiptFails, &t.receiptDies)
	one(&t.notificationFails, &t.notificationDies)
	one(&t.mailFails, &t.mailLoses)
	if t.mailFails > 0 && random.IntN(2) == 0 {
		t.mailFails = 4 // more failures than one attempt makes calls
	}
	return t
}

package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// trouble is what goes wrong on a payment's way, and how often: in its first attempts
// at each place, one kind after the other.
type trouble struct {
	fails, hangs, dies                  int // of the payments function: 500, its timeout, SIGKILL before it commits
	receiptFails, receiptDies           int // of the receipts function, when its message is sent and nothing committed
	notificationFails, notificationDies int // of the notifications function, when the mailer was told and nothing knows
	mailFails, mailLoses                int // of the mailer: 503; a mail, and then no answer
}

// attempts returns how many attempts at a payment fail.
func (t trouble) attempts() int { return max(t.fails, t.hangs, t.dies) }

// receiptAttempts returns how many attempts at a receipt fail. Each has sent its message.
func (t trouble) receiptAttempts() int { return max(t.receiptFails, t.receiptDies) }

// notificationAttempts returns how many attempts at a notification fail at least. Each has
// called the mailer.
func (t trouble) notificationAttempts() int { return max(t.notificationFails, t.notificationDies) }

// mailCalls returns how often the mailer is called at least, where no more than one attempt
// at a notification is to fail: three times in an attempt (mailerCalls, in
// functions/notifications), which fails as asked where the mailer was told.
func (t trouble) mailCalls() int {
	calls := 1 + max(t.mailFails, t.mailLoses)
	if calls <= 3 {
		calls += t.notificationAttempts()
	}
	return calls
}

// order returns a request for a payment of so many cents that meets the trouble.
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

// anyTrouble draws one: at each place it is as likely that nothing is wrong.
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
		t.mailFails = 4 // for longer than an attempt's own calls last
	}
	return t
}

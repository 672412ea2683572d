package chaos

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// goodBooks returns books without a mistake: key a was completed by its first attempt, key b by
// its second after the first had died, and key t is a transfer.
func goodBooks() Books {
	return Books{
		Answers: []Answer{
			created("a", "pay_1"), replayed("a", "pay_1"), refused("a", 409, lambdaidem.ErrInProgress),
			{Key: "b", Status: 500, Body: `{"message":"Internal Server Error"}`}, {Key: "b"},
			refused("b", 503, lambdaidem.ErrStoreUnavailable), created("b", "pay_3"), replayed("b", "pay_3"),
			created("t", "tra_1"),
		},
		Payments:  []Payment{{"pay_1", "a", 1250}, {"pay_3", "b", 1250}},
		Transfers: []Transfer{{"tra_1", "t", 1250, "done"}},
		Effects:   []Effect{{"tra_1", 1250}},
		Records:   []Record{{"a", lambdaidem.Completed, 1}, {"b", lambdaidem.Completed, 2}, {"t", lambdaidem.Completed, 1}},
		Money:     Money{Opened: 10000, Balances: 7500},
	}
}

// pay adds a payment, and takes its amount from the balances.
func pay(b *Books, id, key string) {
	b.Payments = append(b.Payments, Payment{id, key, 1250})
	b.Money.Balances -= 1250
}

func created(key, payment string) Answer {
	return Answer{Key: key, Status: 201, Body: `{"id":"` + payment + `","reference":"` + key + `"}`}
}

func replayed(key, payment string) Answer {
	a := created(key, payment)
	a.Replayed = true
	return a
}

func refused(key string, status int, code lambdaidem.Code) Answer {
	return Answer{Key: key, Status: status, RetryAfter: "1", Body: `{"status":1,"code":"` + string(code) + `"}`}
}

func TestAuditFindsNothingInGoodBooks(t *testing.T) {
	r := goodBooks().Audit()
	if len(r.Findings) > 0 {
		t.Errorf("findings: %q", r.Findings)
	}
	if r.Requests != 9 || r.ByStatus[201] != 5 || r.ByStatus[409] != 1 || r.ByStatus[0] != 1 || r.Replays != 2 ||
		r.Keys != 3 || r.Completed != 3 || r.Payments != 2 || r.Transfers != 1 || r.Effects != 1 || r.Retaken != 1 {
		t.Errorf("the counts are %+v", r)
	}
}

func TestAuditExcusesWhatATestArranged(t *testing.T) {
	b := goodBooks()
	b.Records[0].Attempt = 2
	b.Robbed = map[string]int{"a": 1}
	if r := b.Audit(); len(r.Findings) > 0 {
		t.Errorf("findings: %q", r.Findings)
	}
}

func TestAuditFindsEachKindOfWrong(t *testing.T) {
	tests := map[string]struct {
		spoil func(*Books)
		want  string
	}{
		"a 201 without its payment": {
			func(b *Books) { b.Payments, b.Money.Balances = b.Payments[1:], 8750 },
			"names pay_1, which was never made",
		},
		"a 201 with another key's payment": {
			func(b *Books) { b.Answers = append(b.Answers, replayed("a", "pay_3")) },
			"names pay_3, which is key b's",
		},
		"a 201 that names no payment": {
			func(b *Books) { b.Answers[0].Body = "paid" },
			`names nothing that was made: "paid"`,
		},
		"two different answers": {
			func(b *Books) {
				b.Answers = append(b.Answers, replayed("b", "pay_3"))
				b.Answers[len(b.Answers)-1].Body = `{"id":"pay_3","reference":"other"}`
			},
			"2 different 201 answers",
		},
		"answers that differ in white space": {
			func(b *Books) { b.Answers[1].Body += " " },
			"2 different 201 answers",
		},
		"two first answers": {
			func(b *Books) { b.Answers = append(b.Answers, created("a", "pay_1")) },
			"2 of its 201 answers are not replays",
		},
		"a 201 whose record is in progress": {
			func(b *Books) { b.Records[0].State = lambdaidem.InProgress },
			"its record is not completed",
		},
		"a 201 whose record is gone": {
			func(b *Books) { b.Records = b.Records[1:] },
			"its record is not completed",
		},
		"two payments of one key": {
			func(b *Books) { pay(b, "pay_4", "b") },
			"2 payments and transfers; want one",
		},
		"a payment whose record is not completed": {
			func(b *Books) {
				b.Records = append(b.Records, Record{"c", lambdaidem.InProgress, 1})
				pay(b, "pay_4", "c")
			},
			"a payment, and its record is not completed (E1)",
		},
		"a transfer that is done before its record": {
			func(b *Books) {
				b.Records[2].State = lambdaidem.InProgress
				b.Answers = b.Answers[:8]
			},
			"a transfer that is done, and its record is not completed (E1)",
		},
		"a transfer that nobody ended": {
			func(b *Books) { b.Transfers[0].Status, b.Money.Balances = "reserved", 6250 },
			"a transfer that is reserved in the end",
		},
		"a transfer without an effect": {
			func(b *Books) { b.Effects = nil },
			"tra_1 of 1250 had the effects [] outside",
		},
		"a transfer with two": {
			func(b *Books) { b.Effects = append(b.Effects, b.Effects[0]) },
			"want one, of as much (E6)",
		},
		"a transfer with another amount outside": {
			func(b *Books) { b.Effects[0].Amount++ },
			"want one, of as much (E6)",
		},
		"an effect of no transfer": {
			func(b *Books) { b.Effects = append(b.Effects, Effect{"tra_2", 1250}) },
			"told of tra_2, which was never made",
		},
		"money that was made": {
			func(b *Books) { b.Money.Balances++ },
			"there were 10000 cents, and there are 10001",
		},
		"money that was lost by a refund": {
			func(b *Books) { b.Payments[0].Refundable -= 7 },
			"there were 10000 cents, and there are 9993",
		},
		"completed by a later attempt without a payment": {
			func(b *Books) {
				b.Records = append(b.Records, Record{"c", lambdaidem.Completed, 2})
				b.Answers = append(b.Answers, Answer{Key: "c"})
			},
			"completed, and nothing was made (E1)",
		},
		"a takeover from an attempt that lived": {
			func(b *Books) { b.Records[0].Attempt = 2 },
			"2 attempts, but only 0 requests that failed",
		},
		"more takeovers than failures": {
			func(b *Books) { b.Records[1].Attempt = 5 },
			"5 attempts, but only 3 requests that failed",
		},
		"a payment without a record": {
			func(b *Books) { pay(b, "pay_4", "c") },
			"1 payments and transfers, and no record",
		},
		"two records of one key": {
			func(b *Books) { b.Records = append(b.Records, b.Records[0]) },
			"2 records",
		},
		"a mismatch that nobody caused": {
			func(b *Books) { b.Answers = append(b.Answers, refused("a", 422, lambdaidem.ErrPayloadMismatch)) },
			"no valid request may get: 422",
		},
		"an answer that was lost for good": {
			func(b *Books) { b.Answers = append(b.Answers, refused("a", 500, lambdaidem.ErrAnswerUnavailable)) },
			"no valid request may get: 500",
		},
		"a conflict without Retry-After": {
			func(b *Books) { b.Answers[2].RetryAfter = "" },
			"409 idempotency_in_progress without Retry-After",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := goodBooks()
			tt.spoil(&b)
			r := b.Audit()
			if len(r.Findings) != 1 && !strings.HasPrefix(name, "a 201") || !strings.Contains(strings.Join(r.Findings, "\n"), tt.want) {
				t.Errorf("findings: %q; want one that says %q", r.Findings, tt.want)
			}
			if !strings.Contains(r.String(), tt.want) {
				t.Errorf("the report does not show it:\n%s", r)
			}
		})
	}
}

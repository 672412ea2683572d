package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestO2_PurgeMatchesByScopeAndAge(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	done := func(scope string) lambdaidem.Record {
		return lambdaidem.Record{State: lambdaidem.Completed, Scope: scope, StartedAt: now.Add(-3 * time.Hour), CompletedAt: now.Add(-2 * time.Hour)}
	}
	http := done("shop POST /payments/{id} jwt:https://issuer|bob blue")
	operation := done("shop  charge%20it carol")
	foreign := done("not of a guard's form, by its seven parts")
	released := lambdaidem.Record{State: lambdaidem.Released, Scope: "shop  charge%20it ", StartedAt: now.Add(-time.Hour)}
	for _, c := range []struct {
		filter filter
		want   []lambdaidem.Record
	}{
		{filter{All: true}, []lambdaidem.Record{http, operation, foreign, released}},
		{filter{Namespace: "shop"}, []lambdaidem.Record{http, operation, released}},
		{filter{Namespace: "sho"}, nil},
		{filter{Tenant: "blue"}, []lambdaidem.Record{http}},
		{filter{Tenant: "green"}, nil},
		{filter{Caller: "carol"}, []lambdaidem.Record{operation}},
		{filter{Route: "charge it"}, []lambdaidem.Record{operation, released}},
		{filter{Route: "charge%20it"}, nil},
		{filter{Route: "POST /payments/{id}"}, []lambdaidem.Record{http}},
		{filter{Route: "PUT /payments/{id}"}, nil},
		{filter{Route: "/payments/{id}"}, []lambdaidem.Record{http}},
		{filter{Namespace: "shop", Caller: "jwt:https://issuer|bob", Tenant: "blue", Route: "POST /payments/{id}"}, []lambdaidem.Record{http}},
		{filter{Namespace: "shop", Caller: "carol", Tenant: "blue"}, nil},
		{filter{Older: "2h"}, nil}, // a record that is exactly two hours old is not older than two hours
		{filter{Older: "119m"}, []lambdaidem.Record{http, operation, foreign}},
		{filter{Older: "30m"}, []lambdaidem.Record{http, operation, foreign, released}},
		{filter{Since: "2026-11-22T10:00:00Z"}, []lambdaidem.Record{http, operation, foreign, released}},
		{filter{Since: "2026-11-22T10:00:01Z"}, []lambdaidem.Record{released}},
		{filter{Since: "2026-11-22T10:00:00Z", Older: "90m", Tenant: "blue"}, []lambdaidem.Record{http}},
	} {
		p := purgeCommand{filter: c.filter, rate: 1}
		ages, err := p.check()
		if err != nil {
			t.Fatal(err)
		}
		m := c.filter.matcher(ages, now, newFindings())
		for _, rec := range []lambdaidem.Record{http, operation, foreign, released} {
			want := slices.ContainsFunc(c.want, func(r lambdaidem.Record) bool { return r.Scope == rec.Scope })
			if got := m.match(rec); got != want {
				t.Errorf("%+v matches %q: %v; want %v", c.filter, rec.Scope, got, want)
			}
		}
		if m.Records != 4 || m.Chosen != len(c.want) || (m.compared() == nil) != (len(c.want) > 0) {
			t.Errorf("%+v: %d of %d, compared %+v", c.filter, m.Chosen, m.Records, m.compared())
		}
	}
}

// A long part of a scope is shortened to a hash, so the filter's value is shortened in the same way
// before it is compared.
func TestO2_PurgeMatchesLongScopes(t *testing.T) {
	long := strings.Repeat("x", 300)
	f := filter{Caller: long}
	rec := lambdaidem.Record{State: lambdaidem.Completed, Scope: "shop POST / " + lambdaidem.ScopePart(long)}
	if !f.matcher(ages{}, time.Now(), newFindings()).match(rec) {
		t.Error("a long caller doesn't match its own records")
	}
}

func TestO2_APurgeThatMatchesNothingNamesTheNearest(t *testing.T) {
	f := filter{Caller: "bbo", Route: "POST /payment", Tenant: "blue"}
	m := f.matcher(ages{}, time.Now(), newFindings())
	for _, scope := range []string{"shop POST /payments bob blue", "shop POST /refunds rob blue", "shop GET /payments alice blue", "shop POST /payments christopher blue", "x"} {
		m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: scope})
	}
	var out strings.Builder
	m.text(printer{&out}, m.compared())
	want := `Nothing matched. Each flag was compared with 5 records:
  --route POST /payment matches 0; the nearest: POST /payments, GET /payments, POST /refunds
  --caller bbo matches 0; the nearest: bob, rob, alice
  --tenant blue matches 4
`
	if out.String() != want {
		t.Errorf("it prints\n%swant\n%s", out.String(), want)
	}
	m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: "shop POST /payment bbo blue"})
	out.Reset()
	if m.text(printer{&out}, m.compared()); strings.Contains(out.String(), "matches") {
		t.Errorf("although something matched it prints %s", out.String())
	}
}

func TestO2_APurgeByCallerNamesCallersLikeIt(t *testing.T) {
	const dora = "jwt:https://issuer.example.com|dora"
	m := filter{Caller: dora, Namespace: "shop"}.matcher(ages{}, time.Now(), newFindings())
	for _, caller := range []string{dora, "jwt:https://issuer.example.com/|dora", "jwt:https://other|dora", "jwt:https://issuer.example.com|Dora",
		"jwt:https://issuer.example.com|doris", "jwt:https://issuer.example.com|doriss", "jwt:https://issuer.example.com|bob", "apikey:dora"} {
		m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: "shop POST /payments " + caller})
		m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: "shop POST /payments " + caller})
	}
	var out strings.Builder
	m.text(printer{&out}, m.compared())
	want := `4 callers are like this one, and not purged. The same person?
  jwt:https://issuer.example.com/|dora
  jwt:https://issuer.example.com|Dora
  jwt:https://issuer.example.com|doris
  jwt:https://other|dora
`
	if out.String() != want {
		t.Errorf("it prints\n%swant\n%s", out.String(), want)
	}
}

// A matcher remembers only the first values that it sees, up to seenAtMost. A caller similar to
// --caller is found even after more values than that.
func TestO2_ACallerLikeItIsFoundBehindManyOthers(t *testing.T) {
	m := filter{Caller: "jwt:a|dora"}.matcher(ages{}, time.Now(), newFindings())
	for i := range seenAtMost + 10 {
		m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: fmt.Sprintf("shop POST / jwt:a|%08d", i)})
	}
	m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: "shop POST / jwt:a|dora"})
	m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: "shop POST / jwt:b|dora"})
	if got := m.callersAlike(); !slices.Equal(got, []string{"jwt:b|dora"}) {
		t.Errorf("callers alike: %q", got)
	}
	for i := range seenAtMost + 10 {
		m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: fmt.Sprintf("shop POST / jwt:%d|dora", i)})
		m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: fmt.Sprintf("shop  op%d ", i)})
	}
	if len(m.Alike) != seenAtMost || len(m.Routes) != seenAtMost {
		t.Errorf("it remembers %d callers and %d routes", len(m.Alike), len(m.Routes))
	}
	var out strings.Builder
	m.text(printer{&out}, m.compared())
	if want := "  and 990 more (--output json has all)\n"; strings.Count(out.String(), want) != 2 {
		t.Errorf("it prints\n%s", out.String())
	}
}

func TestO2_APurgeByCallerCountsRecordsWithoutACaller(t *testing.T) {
	scopes := []string{"shop POST /transfers dora", "shop  reserve ", "shop  reserve ", "shop message receipt  blue", "shop  reserve bob", "other  reserve ", "x"}
	for _, c := range []struct {
		filter filter
		want   string
	}{
		{filter{Caller: "dora", Namespace: "shop"}, `3 records name no caller, so --caller can't tell whose they are (choose them by --namespace and --route):
  shop message receipt
  shop reserve
`},
		{filter{Namespace: "shop"}, "The records have 2 Lambda tenant ids (--tenant chooses one):\n  (none)\n  blue\n"},
		{filter{Caller: "b", Namespace: "none"}, "Nothing matched. Each flag was compared with 7 records:\n  --namespace none matches 0; the nearest: other, shop\n  --caller b matches 0; the nearest: bob, dora\n"},
	} {
		m := c.filter.matcher(ages{}, time.Now(), newFindings())
		for _, scope := range scopes {
			m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: scope})
		}
		var out strings.Builder
		if m.text(printer{&out}, m.compared()); out.String() != c.want {
			t.Errorf("%+v prints\n%swant\n%s", c.filter, out.String(), c.want)
		}
	}
}

// Purge asks the matcher about parts of answers too. They are not counted as records, but a purge
// that deletes such a part does not say that nothing matched.
func TestO2_AMatcherDoesNotCountPartsOfAnswers(t *testing.T) {
	m := filter{Caller: "dora", Namespace: "shop"}.matcher(ages{}, time.Now(), newFindings())
	for scope, want := range map[string]bool{"shop  report ": false, "shop  report dore": false, "other  report dora": false, "x": false} {
		if got := m.match(lambdaidem.Record{ID: "r", Scope: scope, Token: "t"}); got != want {
			t.Errorf("a part of %q matches: %v; want %v", scope, got, want)
		}
	}
	if m.Records+m.Chosen+m.Unnamed+len(m.Alike)+m.tests[0].Records+m.tests[1].Records != 0 || m.compared() == nil {
		t.Errorf("it found %+v", m.findings)
	}
	if !m.match(lambdaidem.Record{ID: "tenant#r", Scope: "shop  report dora", Token: "t"}) || m.Records != 0 || m.compared() != nil || len(m.IDPrefixes) != 1 {
		t.Errorf("it found %+v", m.findings)
	}
}

func TestO2_AMatcherRemembersABoundedNumberOfScopes(t *testing.T) {
	m := filter{Caller: "nobody"}.matcher(ages{}, time.Now(), newFindings())
	for i := range seenAtMost + 10 {
		m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: fmt.Sprintf("shop POST / %d", i)})
	}
	if n := len(m.tests[0].Seen); n != seenAtMost {
		t.Errorf("it remembers %d callers", n)
	}
}

func TestO2_EditsBetweenTexts(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"bob", "bbo", 2}, {"é", "e", 1}, {"abc", "xabc", 1}, {"flaw", "lawn", 2}} {
		if got := edits(c.from, c.to); got != c.want {
			t.Errorf("from %q to %q: %d; want %d", c.from, c.to, got, c.want)
		}
	}
}

func TestO2_OlderThanIsAPositiveAge(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "36h": 36 * time.Hour, "30d": 720 * time.Hour, "1d": 24 * time.Hour, "90m": 90 * time.Minute, "65535d": 65535 * 24 * time.Hour} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"0d", "0h", "0", "-1h", "-1d", "65536d", "d", "1.5d", "soon", "1h1d", " 1d", "1d "} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q is taken for %v; as an age it would choose any record", text, got)
		}
	}
}

// The matcher of a resumed purge adds to the findings of the journal.
func TestO2_AMatcherAddsToWhatWasFound(t *testing.T) {
	found := newFindings()
	for _, scope := range []string{"shop POST /payments bob", "shop POST /payments dora"} {
		m := filter{Caller: "dore"}.matcher(ages{}, time.Now(), found)
		m.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: scope})
	}
	var out strings.Builder
	m := filter{Caller: "dore"}.matcher(ages{}, time.Now(), found)
	m.text(printer{&out}, m.compared())
	if want := "Nothing matched. Each flag was compared with 2 records:\n  --caller dore matches 0; the nearest: dora, bob\n"; out.String() != want {
		t.Errorf("it prints\n%swant\n%s", out.String(), want)
	}
}

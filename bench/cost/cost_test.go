package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// computed is the whole study by AWS's rule, once for all tests.
func computed(t *testing.T) study {
	t.Helper()
	s, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var whole = sync.OnceValues(func() (study, error) {
	ctx := context.Background()
	r, err := inMemory(ctx)
	if err != nil {
		return study{}, err
	}
	return r.conduct(ctx)
})

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const mend = "run make bench-cost ARGS=-write, and copy the short table into dynamostore/doc.go"

// The pages have the figures that the code has now.
func TestCost_PagesHaveTheComputedFigures(t *testing.T) {
	s := computed(t)
	page := read(t, "docs/cost.md")
	fresh, err := between(page, s.markdown(published))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), string(fresh)); diff != "" {
		t.Errorf("docs/cost.md (-) has other figures than the code (+); %s:\n%s", mend, diff)
	}
	if !bytes.Equal(read(t, "docs/cost.svg"), s.plot(published)) {
		t.Errorf("docs/cost.svg shows other figures than the code has; %s", mend)
	}
	if short := s.short(published); !strings.Contains(string(read(t, "dynamostore/doc.go")), short) {
		t.Errorf("dynamostore/doc.go lacks this table; %s:\n%s", mend, short)
	}
}

// At one replay in 20 requests no other threshold is much better than the
// defaults, for any size of an answer.
func TestCost_DefaultsAreNearTheCheapestAtFivePercent(t *testing.T) {
	s := computed(t)
	if n := s.nearness(published, 0.05); n.factor > 1.05 || n.above > n.of/10 {
		t.Errorf("the defaults are dearer than another layout for %d of %d answers, at the worst by a factor of %.3f (%s of %d bytes)",
			n.above, n.of, n.factor, n.content.name, n.size)
	}
	// That the others differ at all: each layout that is no default is a tenth
	// dearer somewhere, or does not fit.
	for j, l := range layouts[:byDefault] {
		worst := 1.0
		for _, curve := range s.curves {
			for _, one := range curve {
				if !one.by[j].fits {
					worst = 2
				} else {
					worst = max(worst, published.million(one.by[j], 0.05)/published.least(one.by, 0.05))
				}
			}
		}
		if worst < 1.1 {
			t.Errorf("%s is never more than a factor of %.3f dearer", l.name, worst)
		}
	}
}

// Other thresholds save next to nothing, over answers from 1 KB to 128 KB
// together.
func TestCost_ThresholdsAreNearTheMinimumAtFivePercent(t *testing.T) {
	r, err := inMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Every size counts alike: what is added up is the price of a byte.
	sum := func(set func(*dynamostore.Options)) (sum float64) {
		for _, c := range contents {
			for _, size := range steps(1<<10, 128<<10, 12) {
				f, err := r.measure(t.Context(), layout{set: set}, silent, c.answer(size))
				if err != nil {
					t.Fatal(err)
				}
				sum += published.million(f, 0.05) / float64(size)
			}
		}
		return sum
	}
	byDefault := sum(func(*dynamostore.Options) {})
	compare := func(name string, threshold int, set func(*dynamostore.Options)) {
		ratio := sum(set) / byDefault
		t.Logf("%s of %d bytes costs %.4f of what the defaults cost", name, threshold, ratio)
		if ratio < 0.98 {
			t.Errorf("%s of %d bytes costs %.4f of what the defaults cost", name, threshold, ratio)
		}
	}
	for _, n := range []int{4 << 10, 12 << 10, 16 << 10, 24 << 10, 32 << 10, 64 << 10} {
		compare("MaxInline", n, func(o *dynamostore.Options) { o.MaxInline = n })
	}
	for _, n := range []int{1, 1 << 10, 3 << 9, 3 << 10, 4 << 10, 8 << 10} {
		compare("CompressFrom", n, func(o *dynamostore.Options) { o.CompressFrom = n })
	}
}

// No replay costs the refused write of a large item.
func TestCost_NoReplayCostsALargeRefusedWrite(t *testing.T) {
	s := computed(t)
	for _, of := range append(s.curves, s.rows) {
		for _, one := range of {
			if f := one.by[byDefault]; f.replay.refused > s.largest.refused {
				t.Errorf("%s of %d bytes: a replay costs %v write units; the dearest that was found is %v", one.content.name, one.size, f.replay.refused, s.largest.refused)
			}
		}
	}
	l := s.largest
	if l.refused != 21 || l.withMost > 24 || l.oneRead != 65 {
		t.Errorf("the dearest replays: %+v", l)
	}
	if perSecond := partitionWrites / l.refused; perSecond < 40 {
		t.Errorf("%.1f replays a second of one key fit a partition", perSecond)
	}
	if perSecond := partitionReads / l.oneRead; perSecond < 40 {
		t.Errorf("%.1f reads a second of one part fit a partition", perSecond)
	}
	if l.inline < 380 { // what the thresholds keep away
		t.Errorf("inline the dearest costs %v", l.inline)
	}
}

// DynamoDB reports what is computed. Sizes in between stand for all, the large
// ones are for make bench-cost.
func TestCost_DynamoDBReportsWhatIsComputed(t *testing.T) {
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	reporting, err := newRig(t.Context(), time.Now, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	memory, err := inMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contents {
		for _, size := range []int{205, 4 << 10, 32 << 10, 300 << 10} {
			want, err := memory.row(t.Context(), c, size)
			if err != nil {
				t.Fatal(err)
			}
			got, err := reporting.row(t.Context(), c, size)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range got.by {
				if f != want.by[i] {
					t.Errorf("%s of %d bytes, %s: DynamoDB reports %+v; computed are %+v", c.name, size, layouts[i].name, f, want.by[i])
				}
			}
		}
	}
	for _, m := range modes {
		answer := contents[0].answer(1 << 10)
		want, err := memory.measure(t.Context(), layouts[byDefault], m, answer)
		if err != nil {
			t.Fatal(err)
		}
		got, err := reporting.measure(t.Context(), layouts[byDefault], m, answer)
		if err != nil {
			t.Fatal(err)
		}
		if m.transacts { // DynamoDB Local adds up before it rounds
			if got.first.write == 0 || got.first.write > want.first.write {
				t.Errorf("%s: DynamoDB reports %+v; computed are %+v", m.name, got.first, want.first)
			}
			got.first = want.first
		}
		if got != want {
			t.Errorf("%s: DynamoDB reports %+v; computed are %+v", m.name, got, want)
		}
	}
}

// The arithmetic of the tables, by hand: the handler's two items below 1 KB.
func TestCost_TransactionsCostDouble(t *testing.T) {
	r, err := inMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []figures{
		{first: units{write: 2 + 2}, replay: units{refused: 1}, conflict: units{refused: 1}, fits: true},
		{first: units{write: 1 + 2*3}, replay: units{refused: 1}, conflict: units{refused: 1}, fits: true},
		{first: units{write: 2 * 3}, replay: units{refused: 2 * 3}, conflict: units{refused: 2 * 3}, fits: true},
	} {
		got, err := r.measure(t.Context(), layouts[byDefault], modes[i], contents[0].answer(205))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", modes[i].name, got, err, want)
		}
	}
}

func TestCost_PriceIsThatOfTheMix(t *testing.T) {
	f := figures{first: units{write: 10}, replay: units{refused: 1, read: 4}}
	p := prices{write: 0.5, read: 0.125}
	for rate, want := range map[float64]float64{0: 5, 1: 1, 0.5: 3} {
		if got := p.million(f, rate); got != want {
			t.Errorf("at a share of %v it is %v; want %v", rate, got, want)
		}
	}
}

// An item's size by the rule, each kind of value in it.
func TestCost_SizesAreAWSs(t *testing.T) {
	for want, item := range map[int]map[string]types.AttributeValue{
		0:            {},
		2 + 6:        {"id": &types.AttributeValueMemberS{Value: "Straße"[:6]}},
		1 + 3:        {"b": &types.AttributeValueMemberB{Value: []byte{1, 2, 3}}},
		1 + 2:        {"n": &types.AttributeValueMemberN{Value: "1200"}},
		2 + 3:        {"nn": &types.AttributeValueMemberN{Value: "-1250"}},
		1 + 4 + 1:    {"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"": &types.AttributeValueMemberBOOL{Value: true}}}},
		1 + 3 + 1024: {"abcd": &types.AttributeValueMemberS{Value: strings.Repeat("x", 1024)}},
	} {
		if got := sizeOf(item); got != want {
			t.Errorf("%v has %d bytes; want %d", item, got, want)
		}
	}
}

// What can't be counted is an error, never nothing.
func TestCost_WhatIsNotCountedIsAnError(t *testing.T) {
	r, err := inMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &r.table}); err == nil || !strings.Contains(err.Error(), "not counted") {
		t.Errorf("a scan: %v", err)
	}
	absent := "absent"
	if _, err := r.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &absent, Key: payment("x")}); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("a read of no table: %v", err)
	}
	if spent := r.meter.take(); spent != (units{}) {
		t.Errorf("counted all the same: %+v", spent)
	}
}

func TestCost_AnswersHaveTheirSize(t *testing.T) {
	for _, size := range append(steps(205, 400<<10, perDecade), sizes...) {
		if n := len(orders(size)); n != size {
			t.Errorf("JSON of %d bytes has %d", size, n)
		}
		a, again := contents[1].answer(size), contents[1].answer(size)
		if a.Body != again.Body || len(a.Body) != (size+2)/3*4 {
			t.Errorf("noise of %d bytes is %d in base64, equal %v", size, len(a.Body), a.Body == again.Body)
		}
	}
}

func TestCost_Flags(t *testing.T) {
	s, err := parseFlags([]string{"-write", "-measure=false", "-write-price", "1.25", "-priced", "provisioned"})
	if want := (settings{prices{1.25, 0.125, "provisioned"}, true, false}); err != nil || s != want {
		t.Errorf("settings are %+v, %v; want %+v", s, err, want)
	}
	if s, err = parseFlags(nil); err != nil || s.prices != published {
		t.Errorf("settings are %+v, %v", s, err)
	}
	for _, args := range [][]string{{"more"}, {"-write-price", "1"}, {"-read-price", "0", "-priced", "x"}, {"-unknown"}} {
		if s, err := parseFlags(args); err == nil {
			t.Errorf("%q was taken as %+v", args, s)
		}
	}
}

// A page without marks is not overwritten.
func TestCost_PageNeedsItsMarks(t *testing.T) {
	if _, err := between([]byte("# What it costs\n"), "x"); err == nil {
		t.Error("a page without marks was taken")
	}
	got, err := between([]byte("a\n"+begin+"old\n"+end+"b\n"), "new\n")
	if want := "a\n" + begin + "new\n" + end + "b\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

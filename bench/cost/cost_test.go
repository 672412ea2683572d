//go:build !race

// make test-without-race runs these tests without the race detector; see pages_test.go.

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// DynamoDB reports the units that are computed. The test covers a few sizes; make bench-cost also
// covers the large ones.
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
		if m.transacts { // DynamoDB Local adds up the items' sizes before it rounds
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

// DynamoDB reports the computed units for the index of leases. The table itself consumes the
// same with and without the index.
func TestCost_DynamoDBReportsWhatTheIndexOfLeasesConsumes(t *testing.T) {
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
	want, err := memory.leaseCosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := reporting.leaseCosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range want {
		reported := got[i]
		if one.transacts { // DynamoDB Local adds up the items' sizes before it rounds
			reported.off.write, reported.on.write = one.off.write, one.on.write
		}
		if reported != one {
			t.Errorf("%s: DynamoDB reports %+v; computed are %+v", one.name, reported, one)
		}
		table := one.on
		if table.index = 0; table != one.off || one.off.index != 0 {
			t.Errorf("%s: the table consumes %+v with the index, and %+v without", one.name, one.on, one.off)
		}
	}
	by := map[string]float64{}
	for _, one := range want {
		by[one.name] = one.on.index
	}
	if by["new"] != 2 || by["replay"] != 0 || by["new, two steps"] != 2 || by["taken over"] != 3 || by["the attempt dies"] != 1 || len(want) != 10 {
		t.Errorf("by the rule it is %v", by)
	}
}

// A query for dead leases costs half a read unit for each shard, and one for each dead lease.
// DynamoDB Local reports nothing for an empty shard. By AWS's rule, a read that finds nothing costs
// as much as one that finds a small item.
func TestCost_ALookAtTheIndexOfLeases(t *testing.T) {
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	r, err := newRig(t.Context(), time.Now, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	r.table += "-leases"
	if err := r.createTable(t.Context(), r.table, withIndex); err != nil {
		t.Fatal(err)
	}
	store := dynamostore.New(r.client, r.table, withIndex, func(o *dynamostore.Options) { o.AttemptTimeout, o.LeaseShards = time.Minute, 1 })
	for dead, want := range []float64{0, 0.5 + 1, 0.5 + 2} {
		r.meter.take()
		found := 0
		for _, err := range store.DeadLeases(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			found++
		}
		if got := r.meter.take(); got != (units{read: want}) || found != dead {
			t.Errorf("a look that finds %d costs %+v; want %v read units", found, got, want)
		}
		claim := lambdaidem.Claim{ID: fmt.Sprint("lambdaidem#", dead), Token: "t", Now: time.Now(), LeaseEnd: time.Now().Add(-time.Hour), Expires: time.Now().Add(time.Hour)}
		if _, err := store.Acquire(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
}

// The expected figures are worked out by hand: each of the handler's two items is smaller than 1
// KB.
func TestCost_TransactionsCostDouble(t *testing.T) {
	r, err := inMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []figures{
		{first: units{write: 2 + 2}, replay: units{refused: 1}, conflict: units{refused: 1}, lookedUp: units{read: 1}, fits: true},
		{first: units{write: 1 + 2*3}, replay: units{refused: 1}, conflict: units{refused: 1}, lookedUp: units{read: 1}, fits: true},
		{first: units{write: 2 * 3}, replay: units{refused: 2 * 3}, conflict: units{refused: 2 * 3}, lookedUp: units{read: 1}, fits: true},
	} {
		got, err := r.measure(t.Context(), layouts[byDefault], modes[i], contents[0].answer(205))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", modes[i].name, got, err, want)
		}
	}
}

// differences lists every figure for which DynamoDB reports other units. Only for what a
// transaction wrote are differences listed separately.
func TestCost_DifferencesAreFound(t *testing.T) {
	f := figures{first: units{write: 6}, replay: units{refused: 6}, fits: true}
	fresh := func() study {
		life := leaseCost{off: f.first, on: f.first}
		tx := life
		tx.transacts = true
		return study{rows: []row{{contents[0], 205, []figures{f, f}}}, effects: []effect{{modes[0], 205, f}, {modes[1], 205, f}}, leases: []leaseCost{life, tx}}
	}
	for name, c := range map[string]struct {
		change               func(*study)
		others, transactions int
	}{
		"nothing":            {func(*study) {}, 0, 0},
		"a write":            {func(s *study) { s.rows[0].by[1].first.write-- }, 1, 0},
		"a read":             {func(s *study) { s.rows[0].by[0].replay.read++ }, 1, 0},
		"a look-up":          {func(s *study) { s.rows[0].by[1].lookedUp.read++ }, 1, 0},
		"a handler's write":  {func(s *study) { s.effects[0].first.write-- }, 1, 0},
		"a transaction":      {func(s *study) { s.effects[1].first.write-- }, 0, 1},
		"its refused writes": {func(s *study) { s.effects[1].replay.refused-- }, 1, 0},
		"an index's write":   {func(s *study) { s.leases[0].on.index++ }, 1, 0},
		"the table's beside": {func(s *study) { s.leases[0].on.write++ }, 1, 0},
		"in a transaction":   {func(s *study) { s.leases[1].on.write-- }, 0, 1},
		"an index's in one":  {func(s *study) { s.leases[1].on.index++ }, 1, 0},
	} {
		measured := fresh()
		c.change(&measured)
		others, transactions, compared := fresh().differences(measured)
		if len(others) != c.others || len(transactions) != c.transactions || compared != 20 {
			t.Errorf("%s: others %q, transactions %q, of %d", name, others, transactions, compared)
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

// The sizes follow AWS's rule for each type of value.
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

// A refused write consumes as much as the write would have: it depends on the larger of the
// existing item and the new one.
func TestCost_ARefusedWriteConsumesAsIfItHadBeenMade(t *testing.T) {
	r, err := inMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	item := func(id string, size int) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id},
			"x": &types.AttributeValueMemberS{Value: strings.Repeat("x", size-len("id")-len(id)-len("x"))}}
	}
	put := func(item map[string]types.AttributeValue, condition *string) units {
		t.Helper()
		_, err := r.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &r.table, Item: item, ConditionExpression: condition})
		if (err == nil) != (condition == nil) {
			t.Fatal(err)
		}
		return r.meter.take()
	}
	never := "attribute_not_exists(id)"
	for i, c := range []struct{ there, wanted int }{
		{100, 100}, {1023, 100}, {1024, 100}, {1025, 100}, {100, 1024}, {100, 1025}, {5000, 4000}, {4000, 5000}, {5120, 5121},
	} {
		id := fmt.Sprint("item-", i)
		put(item(id, c.there), nil)
		refused := put(item(id, c.wanted), &never)
		_, err := r.client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: &r.table, Item: item(id, c.wanted), ConditionExpression: &never}},
		}})
		cancelled := r.meter.take()
		made := put(item(id, c.wanted), nil)
		if want := (units{refused: made.write}); err == nil || refused != want || cancelled != want.plus(want) {
			t.Errorf("%d bytes over %d: %+v for a write, %+v for a cancelled transaction (%v); made, it consumes %+v", c.wanted, c.there, refused, cancelled, err, made)
		}
	}
}

// A request that can't be counted is an error, never a count of 0.
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
	for _, size := range append(steps(205, finest, perDecade), sizes[len(sizes)-1]) {
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

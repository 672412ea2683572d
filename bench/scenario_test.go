package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testRig(t *testing.T) (context.Context, *rig) {
	t.Helper()
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	r, err := newRig(ctx, server.Config(), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return ctx, r
}

// In every scenario, each side makes the number of round trips that the scenario names. The two
// sides send the same requests, except for ids, tokens and times.
func TestBothSidesSendTheSame(t *testing.T) {
	ctx, r := testRig(t)
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			var sent [sides][]string
			for side, prepare := range [sides]func(*rig, int) operation{s.floor, s.ours} {
				op := prepare(r, 0)
				bodies, err := r.wires[side].record(func() error { return op(ctx) })
				if err != nil {
					t.Fatalf("%s: %v", sideNames[side], err)
				}
				if len(bodies) != s.trips[side] {
					t.Errorf("%s made %d round trips; want %d", s.side(side), len(bodies), s.trips[side])
				}
				for _, body := range bodies {
					sent[side] = append(sent[side], masked(t, body))
				}
			}
			if diff := cmp.Diff(sent[floorSide], sent[oursSide]); diff != "" && s.sameRequests() {
				t.Errorf("the bare SDK (-) and the toolkit (+) send different requests:\n%s", diff)
			}
		})
	}
}

// masked returns the body of a request with its members sorted, because the SDK writes maps in
// random order. In ids, tokens and times, every character is replaced by a question mark.
func masked(t *testing.T, body []byte) string {
	t.Helper()
	var request map[string]any
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	mask(request)
	if token, ok := request["ClientRequestToken"].(string); ok {
		request["ClientRequestToken"] = strings.Repeat("?", len(token))
	}
	actions, _ := request["TransactItems"].([]any)
	for _, a := range actions {
		for _, one := range a.(map[string]any) {
			mask(one.(map[string]any))
		}
	}
	out, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	// The lengths must be equal even before sorting.
	return fmt.Sprintf("%d bytes: %s", len(body), out)
}

func mask(request map[string]any) {
	fresh := map[string][]string{
		"Item":                      {"id", "token", "started_at", "completed_at", "in_progress_expiration", "expiration", "account"},
		"Key":                       {"id"},
		"ExpressionAttributeValues": {":token", ":completed_at", ":expiration", ":now_s", ":now_ms"},
	}
	for part, names := range fresh {
		values, ok := request[part].(map[string]any)
		if !ok {
			continue
		}
		for _, name := range names {
			value, _ := values[name].(map[string]any)
			for kind, text := range value {
				value[kind] = strings.Repeat("?", len(text.(string)))
			}
		}
	}
}

// Both sides also send and receive the same number of bytes, including headers. The limit is an
// exception, because its headers are shorter than the SDK's.
func TestBothSidesSendAndReceiveAsMuch(t *testing.T) {
	ctx, r := testRig(t)
	for _, s := range scenarios {
		c, err := r.compare(ctx, s, plan{atOnce: 1, blocks: 2, block: 3, warmUp: 1}, fixed())
		if err != nil {
			t.Fatal(err)
		}
		floor, ours := c.cost[floorSide], c.cost[oursSide]
		for side, spent := range c.cost {
			if spent.operations != 6 || spent.trips != int64(6*s.trips[side]) {
				t.Errorf("%s: %d operations of %s made %d round trips; want 6 of %d each", s.name, spent.operations, s.side(side), spent.trips, s.trips[side])
			}
		}
		// The checksum in a response's header has eight to ten digits.
		differ := max(floor.received-ours.received, ours.received-floor.received)
		if s.sameRequests() && !s.same && (floor.sent == 0 || floor.sent != ours.sent || floor.received == 0 || differ > 2*floor.trips) {
			t.Errorf("%s: sent %d and %d bytes, received %d and %d; want them equal", s.name, floor.sent, ours.sent, floor.received, ours.received)
		}
		if ours.allocations == 0 || ours.bytes == 0 || (ours.cpuMeasured && ours.cpu <= 0) {
			t.Errorf("%s: nothing was spent: %+v", s.name, ours)
		}
		for side := range sides {
			if n := len(c.took[side]); n != 6 {
				t.Errorf("%s: %s has %d samples; want 6, the warm-up left out", s.name, sideNames[side], n)
			}
		}
	}
}

// Each of many concurrent operations runs exactly once. An error ends all of them.
func TestManyAtOnceDoEachOperationOnce(t *testing.T) {
	done := make([]int, 1000)
	operations := make([]operation, len(done))
	for i := range operations {
		operations[i] = func(context.Context) error { done[i]++; return nil }
	}
	took, spent, err := block(t.Context(), operations, maxAtOnce, nil)
	if err != nil || len(took) != len(done) || spent.operations != int64(len(done)) {
		t.Fatalf("%d times, %d operations, %v", len(took), spent.operations, err)
	}
	for i, n := range done {
		if n != 1 || took[i] < 0 {
			t.Fatalf("operation %d was done %d times in %v", i, n, took[i])
		}
	}
	broken := http.ErrServerClosed
	operations[500] = func(context.Context) error { return broken }
	if _, _, err := block(t.Context(), operations, maxAtOnce, nil); !errors.Is(err, broken) {
		t.Errorf("error is %v; want the operation's", err)
	}
}

// A response that is not the one that the scenario expects is an error, so that nothing wrong is
// measured.
func TestAWrongAnswerIsAnError(t *testing.T) {
	h := lambdaidem.New(memstore.New(), quietly).APIGatewayV2(create)
	e := request("key", ordinary(bodySize))
	if err := send(t.Context(), h, e, http.StatusCreated, false); err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context(), h, e, http.StatusCreated, false); err == nil {
		t.Error("a replay passed for a first answer")
	}
	if err := send(t.Context(), h, e, http.StatusConflict, true); err == nil {
		t.Error("201 passed for 409")
	}
}

func TestTheFloorLooksAtWhatItFinds(t *testing.T) {
	ctx, r := testRig(t)
	if err := r.floorAgain(r.completed, 0, statusInProgress)(ctx); err == nil {
		t.Error("a completed record passed for one in progress")
	}
	if err := r.bare.again(ctx, freshID(), freshToken(), time.Now().Add(time.Minute), statusCompleted); err == nil {
		t.Error("no record passed for a completed one")
	}
	if err := r.bare.lost(ctx, freshID(), freshToken(), accountOf(0)); err == nil {
		t.Error("no record passed for one that a race was lost to")
	}
	if err := r.bare.lost(ctx, r.inProgress[0].id, freshToken(), accountOf(0)); err == nil {
		t.Error("a record in progress passed for one that a race was lost to")
	}
	if err := r.bare.claimed(ctx, r.claimed[0].id, freshToken(), accountOf(0)); err == nil {
		t.Error("a completed record was claimed")
	}
	if err := r.bare.locked(ctx, r.claimed[0].id, freshToken(), accountOf(0), time.Now().Add(time.Minute)); err == nil {
		t.Error("a completed record was locked")
	}
	if err := r.bare.first(ctx, r.completed[0].id, freshToken(), time.Now().Add(time.Minute)); err == nil {
		t.Error("a completed record passed for none")
	}
}

func TestARequestThatCantBeRepeatedIsAnError(t *testing.T) {
	for _, body := range []string{
		`{"TableName":"t","ReturnConsumedCapacity":"TOTAL"}`,
		`{"TableName":"t","Item":{"data":{"B":"eA=="}}}`,
		`{"TableName":"t","Item":{"data":{"M":{}}}}`,
		`{"TableName":`,
	} {
		if r, err := parse([]byte(body)); err == nil {
			t.Errorf("%s was taken as %+v", body, r)
		}
	}
}

// A new request to a handler that enlists writes has its effect on either side: each side debits
// the account once.
func TestBothSidesDebitTheAccount(t *testing.T) {
	ctx, r := testRig(t)
	balance := func() string {
		t.Helper()
		out, err := r.bare.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &r.bare.lock.TableName, ConsistentRead: aws.Bool(true),
			Key: map[string]types.AttributeValue{"id": str(accountOf(7))}})
		if err != nil {
			t.Fatal(err)
		}
		return out.Item["balance"].(*types.AttributeValueMemberN).Value
	}
	const account, amount = 7, 129950
	want := int64(1e15)
	for _, s := range scenarios {
		for side, prepare := range [sides]func(*rig, int) operation{s.floor, s.ours} {
			if err := prepare(r, account)(ctx); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(s.name, ", new") || !s.sameRequests() && strings.Contains(s.name, "optimistic") {
				want -= amount
			}
			if got := balance(); got != fmt.Sprint(want) {
				t.Fatalf("after %s, %s, the balance is %s; want %d", s.name, s.side(side), got, want)
			}
		}
	}
}

// A large answer is stored and replayed byte for byte, in the expected number of requests. Any
// other body is an error.
func TestLargeAnswersAreReplayedByteForByte(t *testing.T) {
	ctx, r := testRig(t)
	l, err := r.measureLarge(ctx, 600<<10, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.first) != 2 || len(l.next) != 2 || l.cost[0].trips != 2*(2+3) || l.cost[1].trips != 2*(1+3) { // 600 KB are stored in three parts
		t.Errorf("%d and %d times, %d and %d requests", len(l.first), len(l.next), l.cost[0].trips, l.cost[1].trips)
	}
	if l.cost[0].sent < 2*600<<10 || l.cost[1].received < 2*600<<10 {
		t.Errorf("sent %d bytes, received %d", l.cost[0].sent, l.cost[1].received)
	}
	given := events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: "eA==", IsBase64Encoded: true}
	if err := same(given, "eA==", false); err != nil {
		t.Error(err)
	}
	if same(given, "eQ==", false) == nil || same(given, "eA==", true) == nil {
		t.Error("another answer passed for the same")
	}
}

// Inputs have about the requested size, and are what their names say.
func TestInputsHaveTheirSize(t *testing.T) {
	for _, size := range []int{bodySize, 1 << 16, largeBody} {
		if text := ordinary(size); len(text) != size || !json.Valid([]byte(text)) {
			t.Errorf("ordinary(%d) has %d bytes; valid JSON: %v", size, len(text), json.Valid([]byte(text)))
		}
	}
	for _, in := range hostile {
		for _, n := range []int{in.large / growthFactor, in.large} {
			e := in.event(n)
			got := len(e.Body)
			switch {
			case in.badKey:
				got = len(e.Headers["idempotency-key"])
			case in.unit == "headers":
				got = len(e.Headers)
			case in.name != "arrays far too deep" && !json.Valid([]byte(e.Body)):
				t.Errorf("%s, %d %s: not JSON", in.name, n, in.unit)
			}
			if float64(got) < 0.9*float64(n) || float64(got) > 1.45*float64(n) {
				t.Errorf("%s has %d %s; want about %d", in.name, got, in.unit, n)
			}
			for _, call := range in.calls(n)[:1] {
				if err := call(t.Context()); err != nil {
					t.Errorf("%s, %d %s: %v", in.name, n, in.unit, err)
				}
			}
		}
	}
}

// Both sides make the same two requests for each message.
func TestMessagesAreMeasured(t *testing.T) {
	ctx, r := testRig(t)
	before := [sides]int64{r.wires[floorSide].trips.Load(), r.wires[oursSide].trips.Load()}
	got, err := r.measureMessages(ctx, 2, fixed())
	if err != nil {
		t.Fatal(err)
	}
	for side := range sides {
		trips := r.wires[side].trips.Load() - before[side]
		if want := int64(2 * 2 * messagesABatch); trips != want && (side == floorSide || trips != want+2) { // and the two requests of the recorded message
			t.Errorf("%s made %d round trips; want %d", sideNames[side], trips, want)
		}
		if got.rate[side] <= 0 {
			t.Errorf("%s: %v messages a second", sideNames[side], got.rate[side])
		}
	}
	if got.ratio.Value <= 0 || got.ratio.Low > got.ratio.High {
		t.Errorf("the ratio is %+v", got.ratio)
	}
}

package powertools_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/powertools"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

var policies = []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold}

func TestR1_TheAnswerOfTheOldFunctionIsReplayed(t *testing.T) {
	m := migrate(lambdaidem.Rerun)
	m.table.item = m.stored(`{"body": "{\"id\": \"pay_1\"}", "headers": {"Content-Type": "application/json"}, "statusCode": 201}`, nil)
	first, _ := m.send(t)
	if first.StatusCode != 201 || first.Body != `{"id": "pay_1"}` || first.Headers["Content-Type"] != "application/json" || m.runs != 0 {
		t.Fatalf("%d runs, answer %+v", m.runs, first)
	}
	in := m.table.inputs[0]
	want, err := powertools.Python.ID("payments.app.handler", []byte(`{"order":42}`))
	if id, ok := in.Key["id"].(*types.AttributeValueMemberS); err != nil || !ok || id.Value != want || len(in.Key) != 1 || *in.TableName != "idempotency" || !*in.ConsistentRead {
		t.Errorf("read %+v", in)
	}

	m.table.item = nil // Powertools' record has expired
	again, _ := m.send(t)
	if again.Body != first.Body || again.Headers["x-idempotency-replayed"]+again.Headers["X-Idempotency-Replayed"] != "true" || m.runs != 0 || len(m.table.inputs) != 1 {
		t.Errorf("%d runs, %d reads, answer %+v", m.runs, len(m.table.inputs), again)
	}
}

func TestHandler_RunsWithoutARecord(t *testing.T) {
	for name, change := range map[string]func(*migration){
		"none": func(*migration) {},
		"expired": func(m *migration) {
			m.table.item = m.stored(`{}`, item{"expiration": number(m.clock.Now().Unix() - 1)})
		},
		"dead": func(m *migration) { m.table.item = m.running(m.clock.Now().Add(-2*time.Second - time.Millisecond)) },
		"run expired": func(m *migration) {
			m.table.item = m.stored("", item{"status": str("INPROGRESS"), "expiration": number(1)})
		},
	} {
		m := migrate(lambdaidem.Hold)
		change(m)
		if got, code := m.send(t); got.StatusCode != 201 || m.runs != 1 || len(m.table.inputs) != 1 {
			t.Errorf("%s: %d runs, %d reads, %d %s", name, m.runs, len(m.table.inputs), got.StatusCode, code)
		}
		if got, _ := m.send(t); got.StatusCode != 201 || m.runs != 1 || len(m.table.inputs) != 1 {
			t.Errorf("%s: the retry: %d runs, %d reads, %d", name, m.runs, len(m.table.inputs), got.StatusCode)
		}
	}
}

// A record is valid until the end of the second in which it expires, as in Powertools.
func TestR1_ARecordThatExpiresNowIsReplayed(t *testing.T) {
	m := migrate(lambdaidem.Rerun)
	m.table.item = m.stored(`{"statusCode": 200, "body": "old"}`, item{"expiration": number(m.clock.Now().Unix())})
	if got, _ := m.send(t); got.Body != "old" || m.runs != 0 {
		t.Errorf("%d runs, %+v", m.runs, got)
	}
}

// An expired record counts as absent, unless its attempt may still be running. A completed record
// counts as absent even before the deadline of its attempt, and so does the record of a dead
// attempt.
func TestR1_ARecordThatHasExpired(t *testing.T) {
	for name, c := range map[string]struct {
		status   string
		deadline time.Duration // from now
	}{"completed before its deadline": {"COMPLETED", time.Minute}, "dead": {"INPROGRESS", -time.Minute}} {
		m := migrate(lambdaidem.Hold, func(o *powertools.Options) { o.Policy = lambdaidem.Hold })
		m.table.item = m.stored(`{"statusCode": 200, "body": "old"}`, item{
			"status": str(c.status), "expiration": number(m.clock.Now().Add(-time.Second).Unix()),
			"in_progress_expiration": number(m.clock.Now().Add(c.deadline).UnixMilli()),
		})
		if got, _ := m.send(t); got.StatusCode != 201 || m.runs != 1 {
			t.Errorf("%s: %d runs, %+v", name, m.runs, got)
		}
	}
}

// The guard does not store a 5xx, although Powertools does.
func TestX1_A5xxOfTheOldFunctionIsNotStored(t *testing.T) {
	m := migrate(lambdaidem.Rerun)
	m.table.item = m.stored(`{"statusCode": 502, "body": "old"}`, nil)
	for i := range 2 {
		if got, _ := m.send(t); got.StatusCode != 502 || m.runs != 0 || len(m.table.inputs) != i+1 {
			t.Errorf("%d runs, %d reads, %+v", m.runs, len(m.table.inputs), got)
		}
	}
	m.table.item["expiration"] = number(1)
	if got, _ := m.send(t); got.StatusCode != 201 || m.runs != 1 {
		t.Errorf("%d runs, %+v", m.runs, got)
	}
}

func TestL8_AnAttemptOfTheOldFunctionIsInProgress(t *testing.T) {
	for _, policy := range policies {
		for name, running := range map[string]func(m *migration) item{
			"running":    func(m *migration) item { return m.running(m.clock.Now().Add(time.Second)) },
			"just ended": func(m *migration) item { return m.running(m.clock.Now().Add(time.Millisecond - 2*time.Second)) },
			"running, after its record expired": func(m *migration) item {
				itm := m.running(m.clock.Now().Add(time.Second))
				itm["expiration"] = number(m.clock.Now().Add(-time.Minute).Unix())
				return itm
			},
			"without an end": func(m *migration) item {
				return m.stored("", item{"status": str("INPROGRESS"), "data": nil, "in_progress_expiration": nil})
			},
		} {
			m := migrate(policy)
			m.table.item = running(m)
			got, code := m.send(t)
			if got.StatusCode != 409 || code != lambdaidem.ErrInProgress || got.Headers["Retry-After"] != "1" || m.runs != 0 {
				t.Errorf("%s, %s: %d runs, %+v", policy, name, m.runs, got)
			}
			m.table.item = m.stored(`{"statusCode": 200, "body": "finished"}`, nil)
			if got, _ := m.send(t); got.Body != "finished" || m.runs != 0 {
				t.Errorf("%s, %s: the retry: %d runs, %+v", policy, name, m.runs, got)
			}
		}
	}
}

func TestL6_HoldHoldsAfterAnAttemptOfTheOldFunctionDied(t *testing.T) {
	m := migrate(lambdaidem.Hold, func(o *powertools.Options) { o.Policy = lambdaidem.Hold })
	m.table.item = m.running(m.clock.Now().Add(-time.Minute))
	if got, code := m.send(t); got.StatusCode != 409 || code != lambdaidem.ErrAttemptAbandoned {
		t.Fatal(got)
	}
	m.table.item = nil
	m.clock.Advance(2 * time.Minute) // the lease of the guard's attempt has ended
	if got, code := m.send(t); got.StatusCode != 409 || code != lambdaidem.ErrAttemptAbandoned || m.runs != 0 {
		t.Errorf("%d runs, %+v", m.runs, got)
	}
}

func TestX5_ARecordThatCannotBeRead(t *testing.T) {
	for _, policy := range policies {
		m := migrate(policy)
		m.table.err = errors.New("AccessDeniedException: no identity-based policy allows dynamodb:GetItem")
		got, code := m.send(t)
		if got.StatusCode != 503 || code != lambdaidem.ErrStoreUnavailable || got.Headers["Retry-After"] != "1" || m.runs != 0 || strings.Contains(got.Body, "Denied") {
			t.Errorf("%s: %d runs, %+v", policy, m.runs, got)
		}
		if e := m.events.Last(t); e.Err == nil || !strings.Contains(e.Err.Error(), "AccessDenied") || !strings.Contains(e.Err.Error(), `"payments.app.handler#`) {
			t.Errorf("%s: the log has %v", policy, e.Err)
		}
		m.table.err = nil
		if got, _ := m.send(t); got.StatusCode != 201 || m.runs != 1 {
			t.Errorf("%s: the retry: %d runs, %+v", policy, m.runs, got)
		}
	}
}

func TestD4_AnItemOfAnotherToolIsRefused(t *testing.T) {
	for _, policy := range policies {
		for why, changed := range map[string]item{
			"this toolkit has written it":         {"token": str("abc")},
			`attribute "status"`:                  {"status": str("RELEASED")},
			`attribute "status" is`:               {"status": nil},
			`attribute "expiration"`:              {"expiration": nil},
			`attribute "expiration" is`:           {"expiration": str("2026-01-01")},
			`attribute "in_progress_expiration"`:  {"in_progress_expiration": str("soon")},
			"its answer is not a string":          {"data": nil},
			"its answer is not a string, which":   {"data": &types.AttributeValueMemberM{Value: item{"statusCode": number(200)}}},
			"its answer is not JSON":              {"data": str("hello")},
			`is not JSON: "{\"statusCode\": NaN}`: {"data": str(`{"statusCode": NaN}`)},
		} {
			m := migrate(policy)
			m.table.item = m.stored(`{"statusCode": 200, "body": ""}`, changed)
			got, code := m.send(t)
			if got.StatusCode != 500 || code != powertools.ErrRecordUnreadable || m.runs != 0 {
				t.Errorf("%s, %s: %d runs, %+v", policy, why, m.runs, got)
			}
			if e := m.events.Last(t); e.Err == nil || !strings.Contains(e.Err.Error(), why) {
				t.Errorf("%s: the log has %v", why, e.Err)
			}
			m.table.item = m.stored(`{"statusCode": 200, "body": "mended"}`, nil)
			if got, _ := m.send(t); got.Body != "mended" || m.runs != 0 {
				t.Errorf("%s, %s: after the mend: %d runs, %+v", policy, why, m.runs, got)
			}
		}
	}
}

func TestF5_AnotherPayloadThanTheOldFunctionValidated(t *testing.T) {
	m := migrate(lambdaidem.Hold)
	hash, err := powertools.Python.ID("", []byte(`10.50`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		validation types.AttributeValue
		status     string // of the record
		validated  string
		want       int
	}{
		{str(hash[1:]), "COMPLETED", `10.5`, 200},
		{str(hash[1:]), "COMPLETED", `10.51`, 422},
		{nil, "COMPLETED", `10.5`, 500},
		{str(hash[1:]), "COMPLETED", ``, 200}, // the old function was not configured to compare
		{str(hash[1:]), "INPROGRESS", `10.51`, 422},
		{str(hash[1:]), "INPROGRESS", `10.5`, 409},
		{str(hash[1:]), "COMPLETED", `{`, 503},
	} {
		m.handle = m.guard(lambdaidem.Hold).APIGatewayV2(powertools.Handler(m.records(powertools.Python),
			func(_ context.Context, e request) (powertools.Selection, error) {
				s := powertools.Selection{Data: json.RawMessage(e.Body)}
				if c.validated != "" {
					s.Validated = json.RawMessage(c.validated)
				}
				return s, nil
			}, m.create))
		m.table.item = m.stored(`{"statusCode": 200, "body": "old"}`, item{"validation": c.validation, "status": str(c.status)})
		m.table.item["in_progress_expiration"] = number(m.clock.Now().Add(time.Second).UnixMilli())
		got, code := m.send(t)
		if got.StatusCode != c.want || m.runs != 0 || (got.StatusCode == 422) != (code == powertools.ErrPayloadMismatch) {
			t.Errorf("%s of %v: %d runs, %+v", c.validated, c.validation, m.runs, got)
		}
		if got.StatusCode == 422 { // the 422 is not stored
			delete(m.table.item, "in_progress_expiration")
			m.table.item["expiration"] = number(1)
			if got, _ := m.send(t); got.StatusCode != 201 || m.runs != 1 {
				t.Errorf("%s: the retry after the record has expired: %d runs, %+v", c.validated, m.runs, got)
			}
			m.runs = 0
		}
	}
}

// An attempt of the old function died under Hold. A request with another payload is refused, and
// does not hold the guard's record, which the request of the dead attempt needs.
func TestF5_AnotherPayloadThanThatOfADeadAttempt(t *testing.T) {
	m := migrate(lambdaidem.Hold)
	hash, err := powertools.Python.ID("", []byte(`10.50`))
	if err != nil {
		t.Fatal(err)
	}
	m.table.item = m.running(m.clock.Now().Add(-time.Minute))
	m.table.item["validation"] = str(hash[1:])
	validated := ""
	m.handle = m.guard(lambdaidem.Hold).APIGatewayV2(powertools.Handler(m.records(powertools.Python, func(o *powertools.Options) { o.Policy = lambdaidem.Hold }),
		func(_ context.Context, e request) (powertools.Selection, error) {
			return powertools.Selection{Data: json.RawMessage(e.Body), Validated: json.RawMessage(validated)}, nil
		}, m.create))
	for _, c := range []struct {
		validated string
		status    int
		code      lambdaidem.Code
	}{{`10.51`, 422, powertools.ErrPayloadMismatch}, {`10.5`, 409, lambdaidem.ErrAttemptAbandoned}} {
		validated = c.validated
		if got, code := m.send(t); got.StatusCode != c.status || code != c.code || m.runs != 0 {
			t.Errorf("%s: %d runs, %d %s", c.validated, m.runs, got.StatusCode, code)
		}
	}
}

// When the old function began to validate payloads, it had stored records without the hash of a
// payload. Find can't tell whether a request has the payload of such a record, so the client is
// never told to send the request with a new key: that could carry it out a second time.
func TestF5_ARecordWithoutAValidatedPayload(t *testing.T) {
	for name, c := range map[string]struct {
		record func(*migration) item
		status int
		code   lambdaidem.Code
	}{
		"completed": {func(m *migration) item { return m.stored(`{"statusCode": 200, "body": "old"}`, nil) }, 500, powertools.ErrRecordUnreadable},
		"running":   {func(m *migration) item { return m.running(m.clock.Now().Add(time.Minute)) }, 409, lambdaidem.ErrInProgress},
		"dead":      {func(m *migration) item { return m.running(m.clock.Now().Add(-time.Minute)) }, 409, lambdaidem.ErrAttemptAbandoned},
	} {
		t.Run(name, func(t *testing.T) {
			m := migrate(lambdaidem.Hold)
			m.table.item = c.record(m)
			m.handle = m.guard(lambdaidem.Hold).APIGatewayV2(powertools.Handler(m.records(powertools.Python, func(o *powertools.Options) { o.Policy = lambdaidem.Hold }),
				func(_ context.Context, e request) (powertools.Selection, error) {
					return powertools.Selection{Data: json.RawMessage(e.Body), Validated: json.RawMessage(`10.5`)}, nil
				}, m.create))
			if got, code := m.send(t); got.StatusCode != c.status || code != c.code || m.runs != 0 {
				t.Errorf("%d runs, %d %s", m.runs, got.StatusCode, got.Body)
			}
		})
	}
}

func TestHandler_LooksNothingUpAfterThePeriod(t *testing.T) {
	var end time.Time
	m := migrate(lambdaidem.Rerun, func(o *powertools.Options) {
		end = o.Clock().Add(time.Hour)
		o.Until = end
	})
	m.table.item = m.running(end.Add(time.Hour))
	m.clock.Advance(time.Hour - time.Nanosecond)
	if got, _ := m.send(t); got.StatusCode != 409 || len(m.table.inputs) != 1 {
		t.Errorf("before the end: %d reads, %+v", len(m.table.inputs), got)
	}
	m.clock.Advance(time.Nanosecond)
	if got, _ := m.send(t); got.StatusCode != 201 || len(m.table.inputs) != 1 {
		t.Errorf("after the end: %d reads, %+v", len(m.table.inputs), got)
	}
	records := m.records(powertools.Python, func(o *powertools.Options) { o.Until = end })
	selectNothing := func(context.Context, request) (powertools.Selection, error) { panic("not reached") }
	m.handle = m.guard(lambdaidem.Rerun).APIGatewayV2(powertools.Handler(records, selectNothing, m.create))
	if got, _ := m.send(t); got.StatusCode != 201 {
		t.Error(got)
	}
	if _, found, err := powertools.Find[response](t.Context(), records, powertools.Selection{}); found || err != nil {
		t.Error(found, err)
	}
}

func TestK4_AnUnguardedRequestIsNotLookedUp(t *testing.T) {
	m := migrate(lambdaidem.Rerun)
	m.table.item = m.stored(`{"statusCode": 200, "body": "old"}`, nil)
	get := idemtest.Request{Method: "GET", Path: "/payments", Key: "order-1"}.APIGatewayV2()
	if got, err := m.handle(idemtest.Invocation(t, time.Minute), get); err != nil || got.Body != "created in Go" || len(m.table.inputs) != 0 {
		t.Errorf("%d reads, %+v, %v", len(m.table.inputs), got, err)
	}
}

func TestHandler_WithoutASelection(t *testing.T) {
	for _, c := range []struct {
		selection powertools.Selection
		err       error
		status    int
		code      lambdaidem.Code
	}{
		{err: powertools.ErrNoRecord, status: 201},
		{err: lambdaidem.Reject(400, "no_order", "The request has no order."), status: 400, code: "no_order"},
		{err: errors.New("no order"), status: 503, code: lambdaidem.ErrRetryable},
		{status: 503, code: lambdaidem.ErrRetryable}, // an empty selection is a mistake
		{selection: powertools.Selection{Data: json.RawMessage(`null`)}, status: 503, code: lambdaidem.ErrRetryable},
	} {
		m := migrate(lambdaidem.Hold)
		result := func(context.Context, request) (powertools.Selection, error) { return c.selection, c.err }
		m.handle = m.guard(lambdaidem.Hold).APIGatewayV2(powertools.Handler(m.records(powertools.Python), result, m.create))
		got, code := m.send(t)
		if got.StatusCode != c.status || code != c.code || (m.runs == 1) != (got.StatusCode == 201) || len(m.table.inputs) != 0 {
			t.Errorf("%+v: %d runs, %d reads, %+v", c, m.runs, len(m.table.inputs), got)
		}
		c.err = powertools.ErrNoRecord // the mistake is mended
		if got, _ := m.send(t); got.StatusCode != 201 {
			t.Errorf("the retry: %+v", got)
		}
	}
}

// Powertools for Python 3.34.0 has stored the answer to a request in which everything that it
// selects is null. ID refuses that data, so the handler does not run, and the error says what to do
// in the safe order: with the id of that record, the answer is found.
func TestFind_ARecordOfAnObjectOfNulls(t *testing.T) {
	const id = "payments.app.handler#31f17bcd8db3fe483871d22b3e6db253" // made by Powertools 3.34.0
	m := migrate(lambdaidem.Rerun)
	m.table.item = m.stored(`{"statusCode": 201, "body": "paid in Python"}`, nil)
	selection := powertools.Selection{Data: json.RawMessage(`{"user_id": null, "order_id": null}`)}
	result := func(context.Context, request) (powertools.Selection, error) { return selection, nil }
	m.handle = m.guard(lambdaidem.Rerun).APIGatewayV2(powertools.Handler(m.records(powertools.Python), result, m.create))
	if got, _ := m.send(t); got.StatusCode != 503 || m.runs != 0 || len(m.table.inputs) != 0 {
		t.Errorf("without an id: %d runs, %d reads, %+v", m.runs, len(m.table.inputs), got)
	}
	_, err := powertools.Python.ID("payments.app.handler", selection.Data)
	if err == nil || !regexp.MustCompile("table.*Selection.ID.*ErrNoRecord").MatchString(err.Error()) {
		t.Errorf("the error is %v; want the advice to look in the table and to set Selection.ID, before ErrNoRecord", err)
	}
	selection.ID = id
	if got, _ := m.send(t); got.Body != "paid in Python" || m.runs != 0 || len(m.table.inputs) != 1 || !reflect.DeepEqual(m.table.inputs[0].Key["id"], str(id)) {
		t.Errorf("with the id: %d runs, %d reads, %+v", m.runs, len(m.table.inputs), got)
	}
}

func TestFind_UsesTheNamesOfTheOldFunction(t *testing.T) {
	m := migrate(lambdaidem.Rerun)
	records := m.records(powertools.TypeScript, func(o *powertools.Options) {
		o.IDAttribute, o.SortKeyAttribute, o.PartitionKey = "PK", "SK", "idempotency#payments"
		o.StatusAttribute, o.ExpirationAttribute, o.InProgressExpirationAttribute = "s", "e", "i"
		o.DataAttribute, o.ValidationAttribute = "d", "v"
		o.Hash = sha256.New
	})
	m.table.item = item{
		"PK": str("idempotency#payments"), "SK": str("x"), "s": str("COMPLETED"), "e": number(m.clock.Now().Unix()), "i": number(1),
		"d": &types.AttributeValueMemberL{Value: []types.AttributeValue{number(7)}},
	}
	for id, s := range map[string]powertools.Selection{
		"payments.app.handler#SwgkJZjomBj5i5z37A2O6QM74sVuV5hHsNYLbbUW90Y=": {Data: []byte(`"order-1"`)},
		"of-our-own": {ID: "of-our-own"},
	} {
		got, found, err := powertools.Find[[]int](t.Context(), records, s)
		if err != nil || !found || len(got) != 1 || got[0] != 7 {
			t.Errorf("%s: %v, %t, %v", id, got, found, err)
		}
		key := m.table.inputs[len(m.table.inputs)-1].Key
		if pk, sk := key["PK"].(*types.AttributeValueMemberS), key["SK"].(*types.AttributeValueMemberS); pk.Value != "idempotency#payments" || sk.Value != id || len(key) != 2 {
			t.Errorf("the key is %s, %s; want %s", pk.Value, sk.Value, id)
		}
	}
}

// Java writes a hash as a number, without leading zeros.
func TestFind_AHashInJava(t *testing.T) {
	m := migrate(lambdaidem.Rerun)
	records := m.records(powertools.Java, func(o *powertools.Options) { o.Hash = sha256.New })
	if _, _, err := powertools.Find[any](t.Context(), records, powertools.Selection{Data: []byte("39")}); err != nil {
		t.Fatal(err)
	}
	if id, ok := m.table.inputs[0].Key["id"].(*types.AttributeValueMemberS); !ok || id.Value != "payments.app.handler#b918943df0962bc7a1824c0555a389347b4febdc7cf9d1254406d80ce44e3f9" {
		t.Errorf("the id is %v", m.table.inputs[0].Key["id"])
	}
}

// A function that Powertools guarded call by call, such as the handler of a queue's message, calls
// Find in a Do.
func TestFind_InACall(t *testing.T) {
	m := migrate(lambdaidem.Rerun)
	m.table.item = m.stored(`{"id": "pay_1"}`, nil)
	guard, records := m.guard(lambdaidem.Rerun), m.records(powertools.Python)
	type receipt struct {
		ID string `json:"id"`
	}
	charge := func(ctx context.Context) (receipt, error) {
		if old, found, err := powertools.Find[receipt](ctx, records, powertools.Selection{Data: []byte(`"order-1"`)}); err != nil || found {
			return old, err
		}
		m.runs++
		return receipt{"new"}, nil
	}
	for range 2 {
		got, err := lambdaidem.Do(idemtest.Invocation(t, time.Minute), guard, lambdaidem.Call{Operation: "charge", Key: "order-1"}, charge)
		if err != nil || got.ID != "pay_1" || m.runs != 0 || len(m.table.inputs) != 1 {
			t.Errorf("%d runs, %d reads, %v, %v", m.runs, len(m.table.inputs), got, err)
		}
	}
}

// Lambda reports the code of an error of Find as the error type of a typed handler.
func TestHandler_ErrorTypesOfATypedHandler(t *testing.T) {
	m := migrate(lambdaidem.Rerun)
	handle := lambdaidem.Handler(m.guard(lambdaidem.Rerun), "charge", func(_ context.Context, key string) (string, error) { return key, nil },
		powertools.Handler(m.records(powertools.Python), func(_ context.Context, key string) (powertools.Selection, error) {
			return powertools.Selection{ID: key, Validated: []byte(`1`)}, nil
		}, func(context.Context, string) (string, error) { return "new", nil }))
	for _, c := range []struct {
		changed item
		want    string
	}{
		{item{"status": str("INPROGRESS"), "validation": str("c4ca4238a0b923820dcc509a6f75849b"), "in_progress_expiration": nil}, "idempotency_in_progress"},
		{item{"validation": str("other")}, "powertools_payload_mismatch"},
		{nil, "powertools_record_unreadable"},
		{item{"status": str("?")}, "powertools_record_unreadable"},
	} {
		m.table.item = m.stored(`"old"`, c.changed)
		if _, err := handle(idemtest.Invocation(t, time.Minute), "order-1"); err == nil || errorType(err) != c.want {
			t.Errorf("%v: the error type is %s: %v", c.changed, errorType(err), err)
		}
	}
}

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	for want, invalid := range map[string]func(){
		"client":   func() { powertools.New(nil, "t", powertools.Python, "p") },
		"table":    func() { powertools.New(&reads{}, "", powertools.Python, "p") },
		"language": func() { powertools.New(&reads{}, "t", "Go", "p") },
		"prefix":   func() { powertools.New(&reads{}, "t", powertools.Python, "") },
		"Policy": func() {
			powertools.New(&reads{}, "t", powertools.Java, "p", func(o *powertools.Options) { o.Policy = "x" })
		},
		"SortKeyAttribute": func() {
			powertools.New(&reads{}, "t", powertools.Java, "p", func(o *powertools.Options) { o.SortKeyAttribute = "SK" })
		},
		"PartitionKey": func() {
			powertools.New(&reads{}, "t", powertools.Java, "p", func(o *powertools.Options) { o.PartitionKey = "x" })
		},
		"Hash": func() {
			powertools.New(&reads{}, "t", powertools.DotNet, "p", func(o *powertools.Options) { o.Hash = nil })
		},
		"Clock": func() {
			powertools.New(&reads{}, "t", powertools.DotNet, "p", func(o *powertools.Options) { o.Clock = nil })
		},
		"an attribute": func() {
			powertools.New(&reads{}, "t", powertools.DotNet, "p", func(o *powertools.Options) { o.DataAttribute = "" })
		},
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "powertools: New: ") || !strings.Contains(text, want) {
					t.Errorf("%s: panic %q", want, text)
				}
			}()
			invalid()
		}()
	}
}

package operate_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// whatChanges maps each row of the page's table to the test that proves it: a function in this
// file, or a test in another file, given by file and name.
var whatChanges = map[string]struct {
	here       func(*testing.T)
	file, name string
}{
	"a fingerprint secret is rotated": {file: "secrets_test.go", name: "TestF5_OperateMD_RotatesSecretsWithoutARefusal"},
	"the first fingerprint secret":    {file: "../../lambdaidem/payload_test.go", name: "TestF4_TheFirstSecretIsIntroducedByASecretThatOnlyMatches"},
	"a secret is removed too early":   {file: "secrets_test.go", name: "TestF5_OperateMD_RotatesSecretsWithoutARefusal"},
	"a pointer in `FingerprintIgnore`, a header in `FingerprintHeaders`, a name in `FingerprintAttributes`":                       {here: anotherPointer},
	"a typed payload gains a field (`Do`, `Handler`, `HashKey`; a newer aws-lambda-go)":                                           {file: "../../lambdaidem/typed_test.go", name: "TestF4_APayloadMayGainFields"},
	"a field of a typed payload becomes a pointer, or gets or loses `omitempty` or `omitzero`":                                    {file: "../../lambdaidem/typed_deployed_test.go", name: "TestF4_ADeploymentMakesAFieldAPointer"},
	"a typed payload loses or renames a field":                                                                                    {here: aRenamedField},
	"a result's type gains a field (`Do`, `Handler`, `Step`)":                                                                     {here: aWiderResult},
	"a result's type loses or renames a field":                                                                                    {here: aNarrowerResult},
	"a path parameter's name (`{id}` to `{payment}`)":                                                                             {file: "../../lambdaidem/scope_test.go", name: "TestF1_ARenamedParameterReplays"},
	"a name given to `Step` or `DownstreamKey`":                                                                                   {here: anotherStep},
	"a call to another service moves into a `Do`, out of one, or from a `Step` to a `Do`":                                         {here: aMovedCall},
	"`BatchOptions.Key` is set, or `Options.Principal`, or the `Principal` of a `Call`":                                           {here: anotherIdentity},
	"`Options.Key` is set; a route gets another authorizer; tenant isolation":                                                     {here: anotherCaller},
	"raw message delivery; with `BatchOptions.Operation`, also FIFO to standard, a topic or a bus in front of the queue, or back": {here: anotherWay},
	"any other part of a route, a pattern's host, an operation's name":                                                            {here: anotherOperation},
	"the namespace; the function's name, which is its default":                                                                    {here: anotherName},
	"`IDPrefix` is set, changed or removed, also by a roll-back":                                                                  {here: anotherPrefix},
	"a handler's answer over HTTP":                                                                                                {here: anotherAnswer},
	"`Rerun` to `Hold`, or back":                                                                                                  {here: anotherPolicy},
	"`Optimistic` is switched on, in place of steps":                                                                              {file: "../../lambdaidem/optimistic_test.go", name: "TestE4_SwitchedOnBeforeARetryThatHasSteps"},
	"`TTL`":                              {here: anotherTTL},
	"`LeaseIndex`":                       {file: "../../dynamostore/rolling_leaseindex_test.go", name: "TestD4_RollingDeploysOfTheIndex"},
	"`Transport`":                        {here: anotherTransport},
	"`Encryption` begins":                {file: "../../dynamostore/encryption_test.go", name: "TestS1_BeginningWithEncryption"},
	"answers in parts, steps, encodings": {file: "../../dynamostore/rolling_test.go", name: "TestD4_RollingDeploys"},
}

// Each row of the page's table of changes in a rolling deployment has a test that proves it.
func TestD4_OperateMD_WhatARollingDeploymentChanges(t *testing.T) {
	proved := map[string]bool{}
	for _, row := range rows(t, readPage(t).section(t, "Something changes in a deployment"), "what changes") {
		c, known := whatChanges[row[0]]
		proved[row[0]] = true
		switch {
		case !known:
			t.Errorf("nothing proves what the page says of %s", row[0])
		case c.here != nil:
			t.Run(row[0], c.here)
		case !hasTest(t, c.file, c.name):
			t.Errorf("what the page says of %s was proved by %s in %s, which is not there", row[0], c.name, c.file)
		}
	}
	for what := range whatChanges {
		if !proved[what] {
			t.Errorf("the page has no row of %s", what)
		}
	}
}

// hasTest reports whether a file has a test of that name.
func hasTest(t *testing.T, file, name string) bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			return true
		}
	}
	return false
}

// version returns the guard of one version of a function, with options on top of those that all
// versions have.
func version(store lambdaidem.Store, optFns ...func(*lambdaidem.Options)) *lambdaidem.Guard {
	all := []func(*lambdaidem.Options){func(o *lambdaidem.Options) { o.Namespace, o.Observer = "payments", lambdaidem.Discard }}
	return lambdaidem.New(store, append(all, optFns...)...)
}

// sendTo sends a payment to a guarded handler that creates it.
func sendTo(t *testing.T, guard *lambdaidem.Guard, key, body string) answer {
	t.Helper()
	return handledBy(t, guard, created, key, body)
}

func handledBy(t *testing.T, guard *lambdaidem.Guard, h func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error), key, body string) answer {
	t.Helper()
	r := idemtest.Request{Key: key, Body: body, Caller: idemtest.JWT("https://issuer.example.com", "alice")}
	out, err := guard.APIGatewayV2(h)(t.Context(), r.APIGatewayV2())
	if err != nil && !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	return answer{out.StatusCode, out.Headers["X-Idempotency-Replayed"] == "true", out.Body}
}

func anotherAnswer(t *testing.T) {
	store := memstore.New()
	first := sendTo(t, version(store), "k", `{}`)
	today := func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusAccepted, Body: `{"payment":{"id":"p-1"}}`}, nil
	}
	if got := handledBy(t, version(store), today, "k", `{}`); got.status != first.status || got.body != first.body || !got.replayed {
		t.Errorf("an old record replays as %+v; want %+v", got, first)
	}
}

// anotherPointer checks the retries after a deployment that ignores a part of the payload. A retry
// whose payload has that part is refused, a retry without the part gets the stored answer, and a
// retry of a released record runs.
func anotherPointer(t *testing.T) {
	store := memstore.New()
	ignoring := version(store, func(o *lambdaidem.Options) { o.FingerprintIgnore = []string{"/at"} })
	for _, c := range []struct {
		key, body string
		status    int
	}{
		{"with", `{"amount":1,"at":2}`, http.StatusUnprocessableEntity},
		{"without", `{"amount":1}`, http.StatusCreated},
	} {
		sendTo(t, version(store), c.key, c.body)
		if got := sendTo(t, ignoring, c.key, c.body); got.status != c.status || got.status == http.StatusCreated && !got.replayed {
			t.Errorf("%s the part: a retry got %+v; want %d", c.key, got, c.status)
		}
	}
	failing := func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{}, lambdaidem.Retryable(errDied)
	}
	handledBy(t, version(store), failing, "released", `{"amount":1,"at":2}`)
	if got := sendTo(t, ignoring, "released", `{"amount":1,"at":2}`); got.status != http.StatusCreated || got.replayed {
		t.Errorf("a retry of a released record got %+v; want a run", got)
	}
}

// aRenamedField checks that a payload still matches if the field that was renamed is zero, and that
// it is refused otherwise.
func aRenamedField(t *testing.T) {
	type before struct{ Amount, Fee int }
	type after struct{ Amount, Charge int }
	for fee, refused := range map[int]bool{0: false, 1: true} {
		guard := version(memstore.New())
		if _, err := doWith(t, guard, before{100, fee}); err != nil {
			t.Fatal(err)
		}
		if _, err := doWith(t, guard, after{100, fee}); errors.Is(err, lambdaidem.ErrPayloadMismatch) != refused || !refused && err != nil {
			t.Errorf("with the fee %d: %v; want a refusal: %t", fee, err, refused)
		}
	}
}

// doWith runs a guarded operation on a payload.
func doWith(t *testing.T, guard *lambdaidem.Guard, payload any) (string, error) {
	t.Helper()
	call := lambdaidem.Call{Operation: "charge", Key: "k", Payload: payload}
	return lambdaidem.Do(t.Context(), guard, call, func(context.Context) (string, error) { return "p-1", nil })
}

func aWiderResult(t *testing.T) {
	type before struct{ ID string }
	type wider struct{ ID, State string }
	guard := version(memstore.New())
	if _, err := do(t, guard, "charge", before{"p-1"}); err != nil {
		t.Fatal(err)
	}
	if got, err := do(t, guard, "charge", wider{"p-2", "new"}); err != nil || got != (wider{ID: "p-1"}) {
		t.Errorf("a type with one more field got %+v, %v; want the stored result", got, err)
	}
}

func aNarrowerResult(t *testing.T) {
	type before struct{ ID, State string }
	type narrower struct{ ID string }
	type unset struct {
		ID    string
		State string `json:",omitempty"`
	}
	guard := version(memstore.New())
	if _, err := do(t, guard, "charge", before{"p-1", "new"}); err != nil {
		t.Fatal(err)
	}
	if got, err := do(t, guard, "charge", narrower{"p-2"}); !errors.Is(err, lambdaidem.ErrAnswerUnreadable) {
		t.Errorf("a type that lost a field got %+v, %v; want %s", got, err, lambdaidem.ErrAnswerUnreadable)
	}
	if got, err := do(t, guard, "charge-2", narrower{"p-2"}); err != nil || got.ID != "p-2" {
		t.Errorf("a new operation got %+v, %v; want a run", got, err)
	}
	if _, err := do(t, guard, "charge-3", unset{ID: "p-3"}); err != nil {
		t.Fatal(err)
	}
	if got, err := do(t, guard, "charge-3", narrower{"p-4"}); err != nil || got.ID != "p-3" {
		t.Errorf("a type that lost a field that was not set got %+v, %v; want the stored result", got, err)
	}
}

// anotherOperation checks that under another operation's name, a call with the same key runs again,
// and has another downstream key.
func anotherOperation(t *testing.T) {
	guard, keys := version(memstore.New()), map[string]bool{}
	for _, operation := range []string{"charge", "pay"} {
		call := lambdaidem.Call{Operation: operation, Key: "k"}
		if _, err := lambdaidem.Do(t.Context(), guard, call, func(ctx context.Context) (string, error) {
			keys[lambdaidem.DownstreamKey(ctx, "bank")] = true
			return "", nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 2 {
		t.Errorf("two operations ran under the downstream keys %v; want one each", keys)
	}
}

// do makes a guarded call whose function returns the given result. If there is a stored result, do
// returns the stored result instead.
func do[T any](t *testing.T, guard *lambdaidem.Guard, operation string, result T) (T, error) {
	t.Helper()
	return lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: operation, Key: "k"}, func(context.Context) (T, error) { return result, nil })
}

func anotherName(t *testing.T) {
	store := memstore.New()
	own := lambdacontext.FunctionName
	t.Cleanup(func() { lambdacontext.FunctionName = own })
	named := func(function, namespace string) *lambdaidem.Guard {
		lambdacontext.FunctionName = function
		return lambdaidem.New(store, func(o *lambdaidem.Options) {
			if o.Observer = lambdaidem.Discard; namespace != "" {
				o.Namespace = namespace
			}
		})
	}
	sendTo(t, named("payments", ""), "k", `{}`)
	if got := sendTo(t, named("payments-2", ""), "k", `{}`); got.replayed {
		t.Errorf("under another name the key is not new: %+v", got)
	}
	if got := sendTo(t, named("payments-2", "payments"), "k", `{}`); !got.replayed {
		t.Errorf("with Namespace the old name the key is new: %+v", got)
	}
}

func anotherPolicy(t *testing.T) {
	for _, c := range [][2]lambdaidem.Policy{{lambdaidem.Rerun, lambdaidem.Hold}, {lambdaidem.Hold, lambdaidem.Rerun}} {
		store, clock := memstore.New(), idemtest.NewClock()
		guard := func(p lambdaidem.Policy) *lambdaidem.Guard {
			return version(store, func(o *lambdaidem.Options) { o.Policy, o.Clock = p, clock.Now })
		}
		handledBy(t, guard(c[0]), func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{}, lambdaidem.Uncertain(errDied)
		}, "k", `{}`)
		clock.Advance(5 * time.Minute)
		if got := sendTo(t, guard(c[1]), "k", `{}`); got.status != http.StatusConflict || !strings.Contains(got.body, "idempotency_attempt_abandoned") {
			t.Errorf("begun under %s and met under %s: %+v; want it held", c[0], c[1], got)
		}
	}
}

func anotherTTL(t *testing.T) {
	store, clock := memstore.New(), idemtest.NewClock()
	guard := func(ttl time.Duration) *lambdaidem.Guard {
		return version(store, func(o *lambdaidem.Options) { o.TTL, o.Clock = ttl, clock.Now })
	}
	sendTo(t, guard(24*time.Hour), "before", `{}`)
	sendTo(t, guard(72*time.Hour), "after", `{}`)
	clock.Advance(25 * time.Hour)
	if got := sendTo(t, guard(72*time.Hour), "after", `{}`); !got.replayed {
		t.Errorf("a record of the longer TTL is gone: %+v", got)
	}
	if got := sendTo(t, guard(72*time.Hour), "before", `{}`); got.replayed {
		t.Errorf("a record keeps not what it was written with: %+v", got)
	}
}

func anotherTransport(t *testing.T) {
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	client, table := server.Client(), freshTable(t, server)
	stores := map[dynamostore.Transport]*dynamostore.Store{}
	for _, transport := range []dynamostore.Transport{dynamostore.TransportDirect, dynamostore.TransportSDK} {
		t.Setenv("LAMBDAIDEM_TRANSPORT", map[dynamostore.Transport]string{dynamostore.TransportSDK: "sdk"}[transport])
		stores[transport] = dynamostore.New(client, table, func(o *dynamostore.Options) { o.AttemptTimeout = time.Minute })
		if got, why := stores[transport].Transport(); got != transport {
			t.Errorf("the transport is %s (%s); want %s", got, why, transport)
		}
	}
	for first, second := range map[dynamostore.Transport]dynamostore.Transport{dynamostore.TransportDirect: dynamostore.TransportSDK, dynamostore.TransportSDK: dynamostore.TransportDirect} {
		want := sendTo(t, version(stores[first]), string(first), `{}`)
		if got := sendTo(t, version(stores[second]), string(first), `{}`); !got.replayed || got.status != want.status || got.body != want.body {
			t.Errorf("what came by %s replays by %s as %+v", first, second, got)
		}
	}
}

// anotherStep checks that a step under another name runs again, with another downstream key.
func anotherStep(t *testing.T) {
	guard := version(memstore.New())
	var keys []string
	for _, name := range []string{"charge", "charge-card"} {
		_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) {
			n, err := lambdaidem.Step(ctx, name, func(ctx context.Context) (int, error) {
				keys = append(keys, lambdaidem.DownstreamKey(ctx, name))
				return 1, nil
			})
			if err == nil && name == "charge" {
				err = errDied
			}
			return n, err
		})
		if err != nil && !errors.Is(err, errDied) {
			t.Fatal(err)
		}
	}
	if len(keys) != 2 || keys[0] == keys[1] {
		t.Errorf("the step ran under the downstream keys %q", keys)
	}
}

// aMovedCall checks that a call that moves into a Do, or out of one, is made again with another
// downstream key. The key stays the same if the handler calls DownstreamKey outside of the Do.
func aMovedCall(t *testing.T) {
	type form = func(ctx context.Context, guard *lambdaidem.Guard, call func(key string) error) error
	inDo := func(ctx context.Context, guard *lambdaidem.Guard, fn func(context.Context) error) error {
		inner := lambdaidem.Call{Operation: "charge", Key: lambdaidem.RecordID(ctx)}
		_, err := lambdaidem.Do(ctx, guard, inner, func(ctx context.Context) (int, error) { return 1, fn(ctx) })
		return err
	}
	bare := func(ctx context.Context, _ *lambdaidem.Guard, call func(string) error) error {
		return call(lambdaidem.DownstreamKey(ctx, "bank"))
	}
	step := func(ctx context.Context, _ *lambdaidem.Guard, call func(string) error) error {
		_, err := lambdaidem.Step(ctx, "charge", func(ctx context.Context) (int, error) {
			return 1, call(lambdaidem.DownstreamKey(ctx, "bank"))
		})
		return err
	}
	within := func(ctx context.Context, guard *lambdaidem.Guard, call func(string) error) error {
		return inDo(ctx, guard, func(ctx context.Context) error { return call(lambdaidem.DownstreamKey(ctx, "bank")) })
	}
	keyFromOutside := func(ctx context.Context, guard *lambdaidem.Guard, call func(string) error) error {
		key := lambdaidem.DownstreamKey(ctx, "bank")
		return inDo(ctx, guard, func(context.Context) error { return call(key) })
	}
	for name, c := range map[string]struct {
		before, after form
		sameKey       bool
	}{
		"into a Do":                                   {bare, within, false},
		"out of a Do":                                 {within, bare, false},
		"from a Step to a Do":                         {step, within, false},
		"into a Do, with the key of before":           {bare, keyFromOutside, true},
		"from a Step to a Do, with the key of before": {step, keyFromOutside, true},
	} {
		guard := version(memstore.New())
		var keys []string
		for _, made := range []form{c.before, c.after} {
			_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) {
				if err := made(ctx, guard, func(key string) error { keys = append(keys, key); return nil }); err != nil {
					return 0, err
				}
				if len(keys) == 1 {
					return 0, errDied // end the first attempt after the call, so that a retry runs the handler again
				}
				return 1, nil
			})
			if err != nil && !errors.Is(err, errDied) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if len(keys) != 2 || (keys[0] == keys[1]) != c.sameKey {
			t.Errorf("%s: the downstream keys are %q; want two calls, under the same key: %t", name, keys, c.sameKey)
		}
	}
}

// anotherIdentity checks that a retry runs again after a deployment that changes the identity of
// its record: a request or a Do has another caller, or the key of a message is taken from its body.
func anotherIdentity(t *testing.T) {
	store := memstore.New()
	first := sendTo(t, version(store), "k", `{}`)
	other := version(store, func(o *lambdaidem.Options) {
		o.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return "alice", nil }
	})
	if got := sendTo(t, other, "k", `{}`); first.replayed || got.replayed {
		t.Errorf("with another caller it replays: %+v", got)
	}
	runs := 0
	for _, principal := range []string{"", "", "alice"} {
		call := lambdaidem.Call{Operation: "reserve", Key: "k", Principal: principal}
		if _, err := lambdaidem.Do(t.Context(), version(store), call, func(context.Context) (int, error) { runs++; return 0, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 2 {
		t.Errorf("the call ran %d times; want once without a principal, and once with it", runs)
	}
	runs = 0
	h := func(context.Context, events.SQSMessage) error { runs++; return nil }
	batch := events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m-1", EventSourceARN: "arn:q", Body: `{"payment":"p-1"}`}}}
	byBody := func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Key = func(context.Context, events.SQSMessage) (string, error) { return "p-1", nil }
	}
	guard := version(store)
	for _, handler := range []func(context.Context, events.SQSEvent) (events.SQSEventResponse, error){guard.SQS(h), guard.SQS(h), guard.SQS(h, byBody)} {
		if out, err := handler(t.Context(), batch); err != nil || len(out.BatchItemFailures) > 0 {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	if runs != 2 {
		t.Errorf("the message ran %d times; want once under each key", runs)
	}
}

// anotherPrefix checks that a request that was answered runs again, under another downstream key,
// after a deployment that sets, changes or removes IDPrefix. The roll-back of that deployment makes
// the requests run again that were answered in between.
func anotherPrefix(t *testing.T) {
	for _, change := range [][2]string{{"", "acme"}, {"acme", "globex"}, {"acme", ""}} {
		store, keys := memstore.New(), map[string][]string{}
		send := func(prefix, key string) {
			t.Helper()
			guard := version(store, func(o *lambdaidem.Options) { o.IDPrefix = prefix })
			handledBy(t, guard, func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
				keys[key] = append(keys[key], lambdaidem.DownstreamKey(ctx, "bank"))
				return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated}, nil
			}, key, `{}`)
		}
		send(change[0], "before")
		send(change[1], "before")
		send(change[1], "after")
		send(change[0], "after") // the roll-back
		for key, ran := range keys {
			if len(ran) != 2 || ran[0] == ran[1] {
				t.Errorf("from %q to %q: the request of %s ran under the downstream keys %q", change[0], change[1], key, ran)
			}
		}
	}
}

// anotherCaller checks that a request that was answered runs again if its key or its caller comes
// from elsewhere, or if its function has got tenant isolation.
func anotherCaller(t *testing.T) {
	byBody := func(o *lambdaidem.Options) {
		o.Key = func(context.Context, *lambdaidem.Request) (string, error) { return "p-1", nil }
	}
	alice := idemtest.JWT("https://issuer.example.com", "alice")
	isolated := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{TenantID: "blue"})
	for change, retry := range map[string]struct {
		ctx    context.Context
		caller idemtest.Caller
		set    func(*lambdaidem.Options)
		again  bool
	}{
		"nothing":            {t.Context(), alice, func(*lambdaidem.Options) {}, false},
		"Options.Key":        {t.Context(), alice, byBody, true},
		"another authorizer": {t.Context(), idemtest.IAM("arn:aws:iam::111122223333:role/alice"), func(*lambdaidem.Options) {}, true},
		"tenant isolation":   {isolated, alice, func(*lambdaidem.Options) {}, true},
	} {
		store := memstore.New()
		sendTo(t, version(store), "k", `{}`)
		r := idemtest.Request{Key: "k", Body: `{}`, Caller: retry.caller}
		out, err := version(store, retry.set).APIGatewayV2(created)(retry.ctx, r.APIGatewayV2())
		if err != nil || out.StatusCode != http.StatusCreated || (out.Headers["X-Idempotency-Replayed"] == "") != retry.again {
			t.Errorf("%s changes, and a retry gets %+v, %v; want a run: %t", change, out, err, retry.again)
		}
	}
}

// anotherWay checks a message that is delivered in an envelope, and then again without it. If the
// message is not finished and has no steps, it runs again with the same downstream key. Otherwise
// it fails.
func anotherWay(t *testing.T) {
	const body, envelope = `{"amount":100}`, `{"Type":"Notification","MessageId":"i","TopicArn":"arn:t","Message":"{\"amount\":100}"}`
	for _, c := range []struct {
		what       string
		step, ends bool
		failures   int
	}{{"not finished", false, false, 0}, {"not finished, with a step", true, false, 1}, {"finished", false, true, 1}} {
		store, keys := memstore.New(), []string{}
		deliver := func(body string, end error) int {
			t.Helper()
			h := version(store).SQS(func(ctx context.Context, _ events.SQSMessage) error {
				if c.step {
					if _, err := lambdaidem.Step(ctx, "reserve", func(context.Context) (int, error) { return 1, nil }); err != nil {
						return err
					}
				}
				keys = append(keys, lambdaidem.DownstreamKey(ctx, "pay"))
				return end
			}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
				o.Key = func(context.Context, events.SQSMessage) (string, error) { return "p-1", nil }
				o.Discard = func(context.Context, events.SQSMessage, error) bool {
					if !c.ends {
						t.Errorf("%s: it may be discarded", c.what)
					}
					return false
				}
			})
			out, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", EventSourceARN: "arn:q", Body: body}}})
			if err != nil {
				t.Fatal(err)
			}
			return len(out.BatchItemFailures)
		}
		first := errors.New("the bank is closed")
		if c.ends {
			first = nil
		}
		deliver(envelope, first)
		if n := deliver(body, nil); n != c.failures {
			t.Errorf("%s: sent again, %d failures; want %d", c.what, n, c.failures)
		}
		if ran := len(keys) == 2; ran != (c.failures == 0) || ran && keys[0] != keys[1] {
			t.Errorf("%s: it ran with the downstream keys %q", c.what, keys)
		}
	}
}

package commands

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

func TestO2_ShowsARecordByIDAndByKey(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, `"k 1"`, paid)
	v := d.view(`"k 1"`)
	if v.State != "completed" || v.Attempt != 1 || v.Kind != lambdaidem.RecordHTTP || v.Answer.Status != 201 || v.Answer.Body != `{"id":"p-1"}` {
		t.Errorf("it is shown as %+v", v)
	}
	var byID recordView
	d.idem("show", v.ID, "-o", "json").want(t, exitDone).into(t, &byID)
	byID.DatabaseTime = v.DatabaseTime
	if diff := cmp.Diff(v, byID, cmp.AllowUnexported(recordView{})); diff != "" {
		t.Errorf("by key - by id +:\n%s", diff)
	}
	d.idem("show", v.ID).want(t, exitDone, "completed: retries get its answer", "POST /payments/{id}", "jwt:https://issuer|bob", v.Token,
		"succeeded, status 201", "Content-Type: application/json", `{"id":"p-1"}`)
}

func TestO2_ShowsWhatIsUnfinished(t *testing.T) {
	d := openDesk(t)
	passedOn := ""
	d.pay(d.held(), "k", func(ctx context.Context) (events.APIGatewayV2HTTPResponse, error) {
		passedOn = lambdaidem.DownstreamKey(ctx, "charge")
		return died(ctx)
	})
	v := d.view("k")
	if v.State != "held" || v.Lease != "over" || string(v.Steps["reserve"]) != `"r-9"` || v.Expires != nil || v.Answer != nil {
		t.Errorf("it is shown as %+v", v)
	}
	d.idem("show", v.ID, "--downstream", "charge").want(t, exitDone, "held: ", `reserve: "r-9"`, "lease ends", "charge: "+passedOn)
}

// Every kind of record is found by the values from which its guard makes the id.
func TestF1_KeysLeadToRecordsAsInTheGuard(t *testing.T) {
	d := openDesk(t)
	ctx := t.Context()
	_, _ = lambdaidem.Do(ctx, d.guard, lambdaidem.Call{Operation: "charge it", Key: `"k"`, Principal: "bob"}, func(context.Context) (map[string]int, error) {
		return map[string]int{"cents": 5}, nil
	})
	_, _ = lambdaidem.Handler(d.guard, "bill", func(context.Context, int) (string, error) { return "k", nil },
		func(context.Context, int) (string, error) { return "", lambdaidem.Permanent(errors.New("no account")) })(ctx, 1)
	_, _ = d.guard.SQS(func(context.Context, events.SQSMessage) error { return nil })(ctx, events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "m-1", EventSourceARN: "arn:aws:sqs:eu-west-1:1:q", EventSource: "aws:sqs", Body: "{}"},
	}})
	acme := d.guard.With(func(o *lambdaidem.Options) { o.IDPrefix = "acme" })
	_, _ = lambdaidem.Do(ctx, acme, lambdaidem.Call{Operation: "charge it", Key: "k", Principal: "bob"}, func(context.Context) (string, error) { return "of acme", nil })
	tenant := lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{TenantID: "blue"})
	_, _ = lambdaidem.Do(tenant, d.guard, lambdaidem.Call{Operation: "charge it", Key: "k"}, func(context.Context) (string, error) { return "of blue", nil })
	anonymous := d.guard.With(func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	for _, target := range []string{"http://pay.example/payments/7", "http://pay.example/"} {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", "k")
		anonymous.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("\xff")) })).ServeHTTP(httptest.NewRecorder(), r)
	}
	for name, c := range map[string]struct {
		flags []string
		says  string
	}{
		"a call":    {[]string{"--operation", "charge it", "--key", `"k"`, "--caller", "bob"}, `{"cents":5}`},
		"a tenant":  {[]string{"--operation", "charge it", "--key", "k", "--tenant", "blue"}, "of blue"},
		"a prefix":  {[]string{"--operation", "charge it", "--key", "k", "--caller", "bob", "--id-prefix", "acme"}, "of acme"},
		"a handler": {[]string{"--operation", "bill", "--handler", "--key", "k"}, "failed failure idempotency_permanent_failure (500, errorString): no account"},
		"a message": {[]string{"--operation", "arn:aws:sqs:eu-west-1:1:q", "--message", "--own-id", "--key", "m-1"}, "succeeded: {}"},
		"a path":    {[]string{"--route", "POST /payments/7", "--host", "pay.example", "--key", "k"}, "(base64) /w=="},
		// This route is a catch-all, so the guard uses the path instead.
		"a catch-all": {[]string{"--route", "POST /", "--host", "pay.example", "--key", "k"}, "(base64) /w=="},
	} {
		t.Run(name, func(t *testing.T) {
			d.idem(append([]string{"show", "--namespace", "shop"}, c.flags...)...).want(t, exitDone, c.says)
		})
	}
}

func TestO2_ShowRefusesWhatItCantMean(t *testing.T) {
	d := openDesk(t)
	d.idem("show", "lambdaidem#none").want(t, exitNone, "there is no record lambdaidem#none")
	d.idem("show", "--namespace", "shop", "--route", "POST /payments/{id}", "--caller", "bob", "--key", "none").want(t, exitNone, "there is no record of this key (lambdaidem#", "compare the namespace", "A call that ran unguarded has none", "failed_open")
	for _, args := range [][]string{
		{"show"}, {"show", "a", "b"}, {"show", "id", "--key", "k"}, {"show", "--key", "k"}, {"show", "--key", "k", "--namespace", "shop"},
		{"show", "--key", "k", "--namespace", "shop", "--route", "/payments"},
		{"show", "--key", "k", "--namespace", "shop", "--route", "post /payments"},
		{"show", "--key", "k", "--namespace", "shop", "--route", "POST /payments", "--operation", "pay"},
		{"show", "--key", "k", "--namespace", "shop", "--route", "POST /payments", "--handler"},
		{"show", "--key", "k", "--namespace", "shop", "--operation", "pay", "--own-id"},
		{"show", "--key", "k", "--namespace", "shop", "--operation", "pay", "--id-prefix", "a#b"},
		{"show", "id", "-o", "xml"}, {"show", "id", "--table", "a b"}, {"show", "id", "--attribute", "token=t"}, {"show", "id", "--unknown"}, {"unknown"},
		{"show", "id", "--table", ""},
	} {
		if g := d.idem(args...); g.code != exitUsage || g.out != "" {
			t.Errorf("%q: exit code %d\n%s%s", args, g.code, g.out, g.err)
		}
	}
}

// Control characters in the data of clients are printed as escapes.
func TestO2_ShowsNoControlCharacters(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", func(context.Context) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "\x1b[2J" + strings.Repeat("x", 5000)}, nil
	})
	g := d.idem(append([]string{"show"}, byKey("k")...)...).want(t, exitDone, `\x1b[2J`)
	if strings.ContainsRune(g.out, '\x1b') || len(g.out) > 2000 {
		t.Errorf("it prints %q", g.out)
	}
}

// show prints why a released record refuses another payload.
func TestL9_ShowSaysWhatBindsARecord(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", func(ctx context.Context) (events.APIGatewayV2HTTPResponse, error) {
		_ = lambdaidem.DownstreamKey(ctx, "charge")
		return events.APIGatewayV2HTTPResponse{}, lambdaidem.Retryable(errLater)
	})
	d.idem(append([]string{"show"}, byKey("k")...)...).want(t, exitDone, "bound         downstream_key: only the same payload runs again, because another service may have got a downstream key\n")
	if v := d.view("k"); v.Bound != lambdaidem.BoundByDownstreamKey {
		t.Errorf("it is bound by %q", v.Bound)
	}
}

// No payload runs again under the key of a completed record, so show prints nothing that binds it.
func TestL9_ShowSaysOfNoCompletedRecordThatItIsBound(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", died)
	d.clock = time.Now()
	if got := d.pay(d.guard, "k", paid); got.StatusCode != 201 {
		t.Fatal(got)
	}
	shown := d.idem(append([]string{"show"}, byKey("k")...)...).want(t, exitDone, "completed: retries get its answer")
	if v := d.view("k"); strings.Contains(shown.out, "bound") || v.Bound != "" {
		t.Errorf("it is bound by %q, and shown as\n%s", v.Bound, shown.out)
	}
}

func TestL9_ABoundOfALaterVersionIsShown(t *testing.T) {
	if got := boundTo("by\tmagic"); strings.Contains(got, "because") {
		t.Errorf("it is shown as %q", got)
	}
}

// payBy sends a request whose key is in its body, for the route POST /pay. The handler is end.
func (d *desk) payBy(key string, end func(context.Context) (events.APIGatewayV2HTTPResponse, error)) {
	d.t.Helper()
	g := d.held().With(func(o *lambdaidem.Options) {
		o.Key = func(_ context.Context, r *lambdaidem.Request) (string, error) { return string(r.Body), nil }
	})
	_, err := g.APIGatewayV2(func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return end(ctx)
	})(d.t.Context(), idemtest.Request{Path: "/pay", Body: key}.APIGatewayV2())
	if err != nil && !errors.Is(err, errLater) {
		d.t.Fatal(err)
	}
}

// A key from the body has no quotes to take away. If it looks like a key in a header, and records of
// both readings exist, no command decides which of them is meant.
func TestK1_AKeyFromTheBodyIsNoHeader(t *testing.T) {
	d := openDesk(t)
	id := func(key string) string {
		return d.guard.RecordID(lambdaidem.Identity{Method: "POST", Route: "/pay", Key: key})
	}
	by := func(command, key string, more ...string) got {
		return d.idem(append([]string{command, "--namespace", "shop", "--route", "POST /pay", "--key", key}, more...)...)
	}
	d.payBy(`a,b`, paid)
	by("show", `a,b`).want(t, exitDone, id(`a,b`))
	d.payBy(`"only"`, paid)
	if g := by("show", `"only"`).want(t, exitDone, id(`"only"`)); g.err != "" {
		t.Errorf("it says %q", g.err)
	}
	d.payBy(`header`, paid)
	by("show", `"header"`).want(t, exitDone, id(`header`), `NOTE: no record has the key "header" as it stands. This is the record of the key header,`)
	if _, err := lambdaidem.Do(t.Context(), d.guard, lambdaidem.Call{Operation: "POST /pay", Key: "done"}, func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	by("show", `"done"`).want(t, exitNone) // Do takes its key as it is

	d.payBy(`abc`, died)
	d.payBy(`"abc"`, died)
	by("show", `abc`).want(t, exitDone, id(`abc`))
	inspect := func(key string) lambdaidem.Record {
		t.Helper()
		seen, err := d.store.Inspect(t.Context(), id(key))
		if err != nil {
			t.Fatal(err)
		}
		return seen.Record
	}
	for _, key := range []string{`abc`, `"abc"`} {
		decision := []string{"--token", inspect(key).Token, "--reason", "r", "--yes"}
		for _, g := range []got{
			by("show", `"abc"`), by("trace", `"abc"`), by("release", `"abc"`, decision...), by("settle", `"abc"`, append(decision, "--status", "201")...),
		} {
			g.want(t, exitUsage, "2 records fit", id(`abc`)+"  http, held, key abc\n", id(`"abc"`)+"  http, held, key \"abc\"\n", "give the id")
		}
	}
	if inspect(`abc`).State != lambdaidem.InProgress || inspect(`"abc"`).State != lambdaidem.InProgress {
		t.Error("a record was changed")
	}
	d.idem("release", id(`"abc"`), "--token", inspect(`"abc"`).Token, "--reason", "r", "--yes").want(t, exitDone)
	var hops []hop
	if by("trace", `"only"`, "-o", "json").want(t, exitDone).into(t, &hops); hops[0].Key != `"only"` {
		t.Errorf("the key is %q", hops[0].Key)
	}
}

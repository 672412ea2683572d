package lambdaidem_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// asFunction is the environment variable that makes the test binary a Lambda function; see
// TestMain.
const asFunction = "LAMBDAIDEM_TEST_AS_FUNCTION"

type debit struct {
	ID, Fails string
	Amount    int
}

// chargeFunction runs a guarded function that fails as its event asks.
func chargeFunction() {
	g := lambdaidem.New(memstore.New(), quiet)
	lambda.Start(lambdaidem.Handler(g, "charge", func(_ context.Context, d debit) (string, error) { return d.ID, nil },
		func(_ context.Context, d debit) (receipt, error) {
			switch d.Fails {
			case "uncertain":
				return receipt{}, lambdaidem.Uncertain(&declined{"timeout"})
			case "permanent":
				return receipt{}, lambdaidem.Permanent(&declined{"stolen"})
			case "own":
				return receipt{}, &declined{"empty"}
			case "rejected":
				return receipt{}, lambdaidem.Reject(404, lambdaidem.ErrInProgress, "Not ours.")
			}
			return receipt{d.Amount}, nil
		}))
}

// invokeFunction starts the test binary as a function behind a Lambda Runtime API, and returns its
// answer to each event.
func invokeFunction(t *testing.T, events ...string) []string {
	t.Helper()
	queued, answers := make(chan string, len(events)), make(chan string)
	for _, e := range events {
		queued <- e
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/next") {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
			answers <- string(body)
			return
		}
		select {
		case e := <-queued:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", strconv.Itoa(len(queued)))
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
			_, _ = io.WriteString(w, e)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(api.Close)
	ctx, stop := context.WithCancel(t.Context())
	function := exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // this test's own binary
	function.Env = append(os.Environ(), asFunction+"=true", "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"))
	if err := function.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = function.Wait()
	})
	got := make([]string, len(events))
	for i := range got {
		select {
		case got[i] = <-answers:
		case <-time.After(30 * time.Second):
			t.Fatalf("the function answered %d of %d events: %q", i, len(events), got)
		}
	}
	return got
}

// Over the Runtime API, a refusal's errorType is its code, which Step Functions can catch by name.
// An error of the handler keeps its own errorType, also when it replays.
func TestX2_OverTheRuntimeAPIARefusalsErrorTypeIsItsCode(t *testing.T) {
	errorType := regexp.MustCompile(`"errorType":"([^"]*)"`)
	steps := []struct{ event, want string }{
		{`{"ID":"a","Amount":1}`, ""},
		{`{"ID":"a","Amount":1}`, ""},
		{`{"ID":"a","Amount":2}`, "idempotency_payload_mismatch"},
		{`{"Amount":2}`, "idempotency_key_missing"},
		{`{"ID":"b","Fails":"uncertain"}`, "declined"},
		{`{"ID":"b","Fails":"uncertain"}`, "idempotency_in_progress"},
		{`{"ID":"c","Fails":"permanent"}`, "declined"},
		{`{"ID":"c","Fails":"permanent"}`, "declined"},
		{`{"ID":"d","Fails":"own"}`, "declined"},
		{`{"ID":"e","Fails":"rejected"}`, "Error"},
		{`{"ID":"e","Fails":"rejected"}`, "Error"},
	}
	var events []string
	for _, s := range steps {
		events = append(events, s.event)
	}
	answers := invokeFunction(t, events...)
	for i, s := range steps {
		got := errorType.FindStringSubmatch(answers[i])
		if s.want == "" && got != nil || s.want != "" && (got == nil || got[1] != s.want) {
			t.Errorf("event %d, %s: Lambda is told %s; want errorType %q", i, s.event, answers[i], s.want)
		}
	}
	if answers[0] != answers[1] || answers[6] != answers[7] || answers[9] != answers[10] {
		t.Errorf("a replay differs: %q", answers)
	}
}

// passedOnCodes are the codes of an inner call's refusal that are equally true for the call of the
// handler that returns it.
var passedOnCodes = map[lambdaidem.Code]bool{
	lambdaidem.ErrInProgress: true, lambdaidem.ErrAttemptAbandoned: true, lambdaidem.ErrStoreUnavailable: true, lambdaidem.ErrOutOfTime: true,
	lambdaidem.ErrOutcomeUnknown: true, lambdaidem.ErrConditionFailed: true, lambdaidem.ErrWriteInvalid: true,
}

// Every code with which the guard refuses a call is an errorType. The code of an inner call's
// refusal is one only if it is true for the outer call as well. Within the process, errors.Is and
// errors.As find the code in both cases.
func TestX2_EveryCodeIsAnErrorType(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`\tErr\w+ +Code = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(all) < 20 {
		t.Fatalf("errors.go has %d codes", len(all))
	}
	for _, m := range all {
		code := lambdaidem.Code(m[1])
		if code == lambdaidem.ErrPermanent || code == lambdaidem.ErrRetryable || code == lambdaidem.ErrLeaseLost {
			continue // marks, and codes that are used only between guard and store
		}
		g := lambdaidem.New(memstore.New(), quiet)
		inner := &lambdaidem.Error{Code: code, Status: 500, Detail: "why"}
		h := lambdaidem.Handler(g, "charge", func(_ context.Context, o order) (string, error) { return o.ID, nil },
			func(context.Context, order) (receipt, error) { return receipt{}, inner })
		want, shown := string(code), *inner
		if !passedOnCodes[code] { // its own text is about the inner call
			want, shown.Detail = "Error", "A part of the request was refused. Repeat the request with the same key."
		}
		if code == lambdaidem.ErrStoreUnavailable || code == lambdaidem.ErrOutOfTime { // its own text is about the inner call
			shown.Detail = "A part of the request could not be completed now. Repeat the request later with the same key."
		}
		if _, errorType, message := invoke(t, h, `{"ID":"o"}`); errorType != want || message != shown.Error() {
			t.Errorf("%s: Lambda reports %q, %q", code, errorType, message)
		}
		if got := reflect.TypeOf(lambdaidem.ByCode(inner)).Name(); got != string(code) {
			t.Errorf("%s: as a refusal of the handler's own, its errorType is %q", code, got)
		}
		_, err := h(t.Context(), order{"p"})
		if own := (*lambdaidem.Error)(nil); !errors.Is(err, code) || !errors.As(err, &own) || own.Code != code || own.Detail != shown.Detail {
			t.Errorf("%s: the error is %#v", code, err)
		}
	}
}

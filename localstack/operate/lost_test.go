package operate_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// afterwards checks the page's section for the time after an incident. The check of the table
// reports no problem, no lease is dead, the commands find the calls that ran without a record or
// lost their lease, and a record names the person who settled it.
func (w *world) afterwards(t *testing.T) {
	w.loseALease(t, payment("bob", "order-10"))
	w.unguarded(t)
	r := w.read(t, "After an incident")
	if out := r.block(); out != "All is well.\nNo lease is dead, and no record is held.\n" {
		t.Errorf("something is left: %s", out)
	}
	found := r.block()
	for _, outcome := range []string{"failed_open", "switched_off", "lease_lost"} {
		if strings.Count(found, `"`+outcome+`"`) != 1 {
			t.Errorf("the outcome %s is not found once: %s", outcome, found)
		}
	}
	if lines := w.find(t, savedQuery(t, "unguarded calls")); len(lines) != 3 {
		t.Errorf("the query finds other outcomes than the commands: %v", lines)
	}
	w.findsByItsQueries(t, "operate.md")
	w.findsByItsQueries(t, "regions.md")
	if out := r.block(); !strings.Contains(out, "settled attempt 1") || !strings.Contains(out, "TICKET-1") {
		t.Errorf("who settled it is not shown: %s", out)
	}
}

// loseALease makes an operator release the record of a running attempt by force. The attempt then
// tries to finish.
func (w *world) loseALease(t *testing.T, r request) {
	t.Helper()
	gate := holdCompletion(w)
	ended := w.sendAside(t, r)
	reached(t, gate)
	sh := w.newShell(t)
	w.learn("--key "+r.key, sh.must("%s", showCommand(r)))
	sh.must("%s", identified("release", r)+" --token "+w.token(r.key)+" --reason 'it hangs' --force --yes")
	if _, err := gate.Open(); err != nil {
		t.Fatal(err)
	}
	(<-ended).expect(t, http.StatusConflict, false, "idempotency_in_progress")
	w.send(t, r).expect(t, http.StatusCreated, false, "pay_")
}

// unguarded runs two requests without a record and logs them to the functions' log. One guard fails
// open, the other is switched off.
func (w *world) unguarded(t *testing.T) {
	t.Helper()
	var logs []io.Writer
	for _, name := range []string{logFile, cloudFile} {
		log, err := os.OpenFile(filepath.Join(w.folder, name), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close() //nolint:errcheck // a write that failed is not found
		logs = append(logs, log)
	}
	logger := slog.New(slog.NewJSONHandler(io.MultiWriter(logs...), &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: asOnLambda}))
	store := idemtest.NewStore(memstore.New())
	store.Always(idemtest.Acquire, idemtest.Refuse(lambdaidem.ReasonUnreachable))
	for _, off := range []string{"false", "true"} {
		t.Setenv(lambdaidem.SwitchOff, off)
		guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
			o.Namespace, o.FailOpen, o.Observer = "shop", true, lambdaidem.SlogObserver(logger)
		})
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		out, err := guard.APIGatewayV2(created)(ctx, idemtest.Request{Key: "k", Caller: idemtest.JWT("https://issuer.example.com", "carol")}.APIGatewayV2())
		end()
		if err != nil || out.StatusCode != http.StatusCreated {
			t.Fatalf("unguarded it got %+v, %v", out, err)
		}
	}
}

// asOnLambda renames the time and the message of a log line as lambdacontext.NewLogger does.
func asOnLambda(_ []string, attribute slog.Attr) slog.Attr {
	switch attribute.Key {
	case slog.TimeKey:
		attribute.Key = "timestamp"
	case slog.MessageKey:
		attribute.Key = "message"
	}
	return attribute
}

func created(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: `{"id":"p-1"}`}, nil
}

var errDied = errors.New("the process was killed")

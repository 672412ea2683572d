package commands

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestO2_SettleCompletesWithTheGivenAnswer(t *testing.T) {
	d := openDesk(t)
	d.pay(d.held(), "k", died)
	v := d.view("k")
	d.idem("settle", v.ID, "--token", v.Token, "--reason", "TICKET-1", "--yes", "--status", "201", "--header", "Content-Type: application/json", "--header", "X: 1", "--header", "X: 2", "--body", `{"id":"p-9"}`).
		want(t, exitDone, "completed: ", "alice settled attempt 1", "TICKET-1")
	got := d.pay(d.held(), "k", paid)
	if got.StatusCode != 201 || got.Body != `{"id":"p-9"}` || got.Headers["X"] != "1, 2" || got.Headers["X-Idempotency-Replayed"] != "true" || d.runs != 1 {
		t.Errorf("a retry got %+v after %d runs", got, d.runs)
	}
	after := d.view("k")
	if after.Fingerprint != v.Fingerprint || after.Token == v.Token || len(after.Steps) > 0 || len(after.Operations) != 1 || after.Operations[0].By != "alice" {
		t.Errorf("it is shown as %+v", after)
	}
	d.idem("settle", v.ID, "--token", v.Token, "--reason", "again", "--yes", "--no-answer").
		want(t, exitRefused, "alice settled it", after.Token)
	d.idem("settle", v.ID, "--token", after.Token, "--reason", "again", "--yes", "--no-answer").want(t, exitRefused, "--again settles it again")
	d.idem("release", v.ID, "--token", after.Token, "--reason", "again", "--yes").want(t, exitRefused, "callers may have received")
	if d.view("k").Token != after.Token {
		t.Error("the refusals changed the record")
	}
}

func TestO2_ReleaseLetsARetryRun(t *testing.T) {
	d := openDesk(t)
	d.pay(d.held(), "k", died)
	v := d.view("k")
	var after recordView
	d.idem("release", v.ID, "--token", v.Token, "--reason", "nothing happened", "--by", "bob", "--yes", "--ttl", "48h", "-o", "json").want(t, exitDone).into(t, &after)
	if after.State != "released" || after.Operations[0].By != "bob" || after.Expires.Sub(after.DatabaseTime) < 47*time.Hour {
		t.Errorf("it became %+v", after)
	}
	if got := d.pay(d.held(), "k", paid); got.StatusCode != 201 || d.runs != 2 {
		t.Errorf("a retry got %+v after %d runs", got, d.runs)
	}
	d.idem("release", v.ID, "--token", v.Token, "--reason", "late", "--yes").want(t, exitRefused, "The record is now completed, attempt 2")
}

func TestO2_LiveLeaseIsRefusedUnlessForced(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now()
	d.pay(d.guard, "k", died)
	v := d.view("k")
	if v.State != "in progress" || v.Lease != "live" {
		t.Fatalf("it is shown as %+v", v)
	}
	d.idem("release", v.ID, "--token", v.Token, "--reason", "r", "--yes").want(t, exitRefused, "the lease is live", "by the database's clock")
	if d.view("k").Token != v.Token {
		t.Error("the refusal changed the record")
	}
	d.idem("release", v.ID, "--token", v.Token, "--reason", "r", "--yes", "--force").want(t, exitDone, "by force")
}

// A destructive command does nothing unless someone has confirmed it: at a terminal, or with --yes
// and the token of the record they saw.
func TestO2_DestructiveVerbsAsk(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", died)
	v := d.view("k")
	d.idem("release", v.ID, "--token", v.Token, "--reason", "r").want(t, exitUsage, "--yes")
	d.idem("release", v.ID, "--reason", "r", "--yes").want(t, exitUsage, "--token")
	d.idem("release", v.ID, "--token", v.Token, "--yes").want(t, exitUsage, "--reason")
	d.idem("release", v.ID, "--token", "another", "--reason", "r", "--yes").want(t, exitRefused, v.Token)
	d.idem("release", v.ID, "--token", v.Token, "--reason", "r", "--yes", "--ttl", "1ms").want(t, exitUsage)
	d.typing("no\n", "release", v.ID, "--reason", "r").want(t, exitRefused, "nothing was changed", "reserve")
	d.typing("", "release", v.ID, "--reason", "r").want(t, exitRefused)
	d.idem("purge", "--all", "--reason", "r").want(t, exitUsage, "--yes")
	d.typing("yes\n", "purge", "--all", "--reason", "r").want(t, exitRefused)
	d.typing("erase\n", "purge", "--all", "--forget", "--reason", "r").want(t, exitRefused, "SECOND")
	if d.view("k").Token != v.Token {
		t.Fatal("the record changed")
	}
	d.typing("yes\n", "release", v.ID, "--reason", "r").want(t, exitDone, "released")
}

// An id and the flags that identify a record may belong to two tenants. No command guesses which
// of them the operator means.
func TestO2_AnIDAndFlagsThatIdentifyARecordAreRefused(t *testing.T) {
	d := openDesk(t)
	acme := d.held().With(func(o *lambdaidem.Options) { o.IDPrefix = "acme" })
	d.pay(acme, "k", died)
	var v leasesView
	d.idem("leases", "--scan", "-o", "json").want(t, exitDone).into(t, &v)
	if len(v.Leases) != 1 {
		t.Fatalf("it lists %+v", v.Leases)
	}
	id := v.Leases[0].ID
	decision := []string{"--token", v.Leases[0].Token, "--reason", "globex asked for it", "--by", "bob", "--yes"}
	for _, command := range [][]string{
		{"show", id}, {"trace", id, "--then", "downstream:mail => shop message mail"},
		append([]string{"release", id}, decision...), append([]string{"settle", id, "--no-answer"}, decision...),
	} {
		for _, flag := range [][]string{{"--id-prefix", "globex"}, {"--namespace", "shop"}, {"--caller", "jwt:https://issuer|eve"}, {"--tenant", "t"},
			{"--route", "POST /payments/{id}"}, {"--host", "shop.example"}, {"--operation", "charge"}, {"--handler"}, {"--message"}, {"--own-id"}, {"--key", "k"}} {
			d.idem(append(command, flag...)...).want(t, exitUsage, "an id identifies the record by itself")
		}
	}
	d.idem(append([]string{"release", id}, decision...)...).want(t, exitDone, "released")
}

// An empty tenant comes from a shell variable that is not set. Without it, the flags identify a record
// of no tenant.
func TestO2_AnEmptyTenantIsRefused(t *testing.T) {
	d := openDesk(t)
	d.pay(d.held(), "k", died)
	token := d.view("k").Token
	for _, flag := range []string{"--id-prefix", "--tenant"} {
		for _, command := range [][]string{{"show"}, {"trace"}, {"release", "--token", token, "--reason", "r", "--yes"}, {"settle", "--no-answer", "--token", token, "--reason", "r", "--yes"}} {
			d.idem(append(append(command, byKey("k")...), flag, "")...).want(t, exitUsage, flag+" is empty; leave the flag out, or give it a value")
		}
	}
}

// onRead is a reader that calls do before its first read.
type onRead struct {
	io.Reader
	do func()
}

func (r *onRead) Read(p []byte) (int, error) {
	if r.do != nil {
		r.do()
		r.do = nil
	}
	return r.Reader.Read(p)
}

// settle refuses a record that its handler has released while the operator was asked, although its
// token is still the same.
func TestO2_ARecordReleasedDuringTheQuestionIsNotSettled(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", died)
	v := d.view("k")
	release := func() {
		if _, err := d.store.Release(t.Context(), lambdaidem.Lease{ID: v.ID, Token: v.Token, Expires: time.Now().Add(time.Hour)}, time.Now()); err != nil {
			t.Error(err)
		}
	}
	answer := Streams{In: &onRead{strings.NewReader("yes\n"), release}, Asks: true}
	d.at(answer, "settle", v.ID, "--reason", "r", "--status", "201").want(t, exitRefused, "not any more", "The record is now released")
	if now := d.view("k"); now.State != "released" || now.Token != v.Token {
		t.Errorf("it became %+v", now)
	}
}

// With --yes the operator is not shown the record, not even at a terminal, so --token must say
// which attempt to change.
func TestO2_YesAtATerminalWantsATokenToo(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", died)
	v := d.view("k")
	for _, verb := range [][]string{{"release", v.ID}, {"settle", v.ID, "--no-answer"}} {
		d.typing("", append(verb, "--reason", "r", "--yes")...).want(t, exitUsage, "Use --token")
	}
	if d.view("k").Token != v.Token {
		t.Error("the record changed")
	}
}

func TestO2_SettleWantsTheFormOfTheKind(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", died)
	http := d.view("k")
	uncertain := func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errLater) }
	_, _ = lambdaidem.Do(t.Context(), d.guard, lambdaidem.Call{Operation: "charge", Key: "k"}, uncertain)
	var value recordView
	d.idem("show", "-o", "json", "--namespace", "shop", "--operation", "charge", "--key", "k").want(t, exitDone).into(t, &value)
	file := filepath.Join(t.TempDir(), "answer.json")
	if err := os.WriteFile(file, []byte(`{ "statusCode": 402, "body": "no" }`), 0o600); err != nil {
		t.Fatal(err)
	}
	settle := func(v recordView, answer ...string) got {
		return d.idem(append([]string{"settle", v.ID, "--token", v.Token, "--reason", "r", "--yes"}, answer...)...)
	}
	for _, bad := range [][]string{
		{}, {"--body", "x"}, {"--value", "{}"}, {"--status", "101"}, {"--status", "200", "--header", "no colon"}, {"--status", "200", "--header", "a b: c"},
		{"--status", "503"}, {"--fail-code", "c", "--fail-message", "m"}, {"--status", "200", "--value", "1"}, {"--answer-file", "/none"},
		{"--status", "200", "--outcome", "perhaps"}, {"--status", "200", "--body", "a", "--body-file", file}, {"--body-file", file},
	} {
		if g := settle(http, bad...); g.code == exitDone {
			t.Errorf("%q was taken for an answer of HTTP", bad)
		}
	}
	for _, bad := range [][]string{{}, {"--status", "200"}, {"--value", "{"}, {"--fail-code", "c"}, {"--fail-code", "c", "--fail-message", "m", "--fail-status", "200"}} {
		if g := settle(value, bad...); g.code == exitDone {
			t.Errorf("%q was taken for a result", bad)
		}
	}
	settle(http, "--status", "503").want(t, exitUsage, "tells the client to try again")
	settle(http, "--answer-file", file).want(t, exitDone, "failed, status 402")
	settle(value, "--value", `{ "a": [1, 2] }`).want(t, exitDone, `succeeded: {"a":[1,2]}`)
	got, err := lambdaidem.Do(t.Context(), d.guard, lambdaidem.Call{Operation: "charge", Key: "k"}, func(context.Context) (map[string][]int, error) { return nil, nil })
	if err != nil || len(got["a"]) != 2 {
		t.Errorf("a retry got %v, %v", got, err)
	}
	_, _ = lambdaidem.Do(t.Context(), d.guard, lambdaidem.Call{Operation: "charge", Key: "f"}, uncertain)
	d.idem("show", "-o", "json", "--namespace", "shop", "--operation", "charge", "--key", "f").want(t, exitDone).into(t, &value)
	settle(value, "--fail-code", "declined", "--fail-message", "no money", "--fail-status", "402").want(t, exitDone, "failed: ", "declined (402, declined)")
	_, _ = lambdaidem.Do(t.Context(), d.guard, lambdaidem.Call{Operation: "charge", Key: "n"}, uncertain)
	d.idem("show", "-o", "json", "--namespace", "shop", "--operation", "charge", "--key", "n").want(t, exitDone).into(t, &value)
	settle(value, "--no-answer").want(t, exitDone, "none: idempotency_answer_unavailable")
}

// An operator who does not know what happened can end a record without an answer. A retry is then
// not told that the request was carried out, unless the operator has said so.
func TestO2_ARecordThatEndsWithoutAnAnswer(t *testing.T) {
	d := openDesk(t)
	for key, c := range map[string]struct {
		args  []string
		shown string
		told  string
	}{
		"k-1": {nil, "nobody knows whether the operation was carried out", "it is not known here whether it was carried out"},
		"k-2": {[]string{"--outcome", "succeeded"}, "the operation was carried out, and an operator", "The request was carried out"},
	} {
		d.pay(d.guard, key, died)
		v := d.view(key)
		d.idem(append([]string{"settle", v.ID, "--token", v.Token, "--reason", "r", "--yes", "--no-answer"}, c.args...)...).want(t, exitDone, c.shown)
		if got := d.pay(d.guard, key, paid); got.StatusCode != http.StatusInternalServerError || !strings.Contains(got.Body, c.told) {
			t.Errorf("with %q, a retry gets %+v", c.args, got)
		}
	}
}

// The client receives a binary body byte for byte: the response to a retry has the body in base64
// and says so, as for any Lambda function.
func TestO2_ABinaryBodyOfASettledAnswerReachesTheClient(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", died)
	v, body := d.view("k"), []byte("%PDF-1.7\n\xff\xfe\x00")
	file := filepath.Join(t.TempDir(), "receipt.pdf")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	d.idem("settle", v.ID, "--token", v.Token, "--reason", "r", "--yes", "--status", "200", "--header", "Content-Type: application/pdf", "--body-file", file).
		want(t, exitDone, "(base64) ")
	got := d.pay(d.guard, "k", paid)
	if sent, err := base64.StdEncoding.DecodeString(got.Body); err != nil || !got.IsBase64Encoded || !bytes.Equal(sent, body) {
		t.Errorf("a retry got %+v", got)
	}
}

// An operator can correct another operator's answer with settle --again. The record lists both
// operations.
func TestO2_SettleAgainMendsAnOperatorsMistake(t *testing.T) {
	d := openDesk(t)
	d.pay(d.held(), "k", died)
	v := d.view("k")
	d.idem("settle", v.ID, "--token", v.Token, "--reason", "TICKET-1", "--yes", "--status", "200").want(t, exitDone)
	v = d.view("k")
	g := d.idem("settle", v.ID, "--token", v.Token, "--reason", "TICKET-2", "--by", "bob", "--yes", "--status", "201", "--body", "right", "--again")
	g.want(t, exitDone, "WARNING: callers may have received", "alice settled attempt 1", "bob settled attempt 1", "TICKET-2", "status 201")
	if got := d.pay(d.held(), "k", paid); got.StatusCode != 201 || got.Body != "right" || d.runs != 1 {
		t.Errorf("a retry got %+v after %d runs", got, d.runs)
	}
	d.pay(d.guard, "done", paid)
	v = d.view("done")
	d.idem("settle", v.ID, "--token", v.Token, "--reason", "r", "--yes", "--status", "200", "--again").want(t, exitRefused, "the answer of an attempt never changes")
	if after := d.view("done"); after.Token != v.Token || after.Answer.Body != `{"id":"p-1"}` {
		t.Errorf("a handler's answer became %+v", after)
	}
}

// A person who confirms has seen that the record is released, so --released is not needed.
func TestO2_APersonSettlesAReleasedRecord(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", func(context.Context) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{}, errLater
	})
	v := d.view("k")
	if v.State != "released" {
		t.Fatalf("the record is %s", v.State)
	}
	d.typing("yes\n", "settle", v.ID, "--reason", "TICKET-1", "--status", "200").want(t, exitDone)
	if got := d.pay(d.guard, "k", paid); got.StatusCode != 200 || d.runs != 1 {
		t.Errorf("a retry got %+v after %d runs", got, d.runs)
	}
}

// settle rejects an invalid answer before it asks for confirmation.
func TestO2_SettleRefusesMistakesBeforeItAsks(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", died)
	v := d.view("k")
	for says, answer := range map[string][]string{
		"Content-Length":         {"--status", "200", "--header", "Content-Length: 3", "--body", "paid"},
		"status 204 has no body": {"--status", "204", "--body", "x"},
		"Content-Encoding":       {"--status", "200", "--header", "Content-Encoding: gzip", "--body", "x"},
		"cookie":                 {"--answer-file", keyFile(t, `{"statusCode":200,"cookies":["a\r\nb"],"body":""}`)},
		"header":                 {"--status", "200", "--header", "a: b\r\nc: d"},
	} {
		g := d.typing("yes\n", append([]string{"settle", v.ID, "--reason", "r"}, answer...)...)
		if g.want(t, exitUsage, says); strings.Contains(g.err, "Type ") {
			t.Errorf("%s: it asks first:\n%s", says, g.err)
		}
	}
	if d.view("k").Token != v.Token {
		t.Error("a refusal changed the record")
	}
}

func TestO2_AnOperatorsOptionsAreTheFlags(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: 1, 1: 1, time.Second: time.Second, 5 * time.Second: 5 * time.Second} {
		var o dynamostore.OperatorOptions
		(&decisionFlags{ttl: time.Hour, maxSkew: given, force: true, again: true}).options(&o)
		if o.MaxSkew != want || o.TTL != time.Hour || !o.Force || !o.Again {
			t.Errorf("--max-skew %v: %+v; want MaxSkew %v, since 0 stands for the default of 2s", given, o, want)
		}
	}
}

func TestO2_OutcomeOfAGivenAnswer(t *testing.T) {
	unavailable := keyFile(t, `{"statusCode":503,"body":"later"}`)
	broken := keyFile(t, `{"statusCode":201,"headers":{"content-type":"application/json"},"body":"{"}`)
	var gzipped strings.Builder
	zip := gzip.NewWriter(&gzipped)
	if _, err := zip.Write([]byte(`{"id":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	zipped := keyFile(t, gzipped.String())
	scopes := map[lambdaidem.RecordKind]string{
		lambdaidem.RecordHTTP: "shop POST /payments jwt:me", lambdaidem.RecordValue: "shop  pay ", lambdaidem.RecordMessage: "shop message q ",
	}
	for _, c := range []struct {
		kind lambdaidem.RecordKind
		args []string
		want lambdaidem.Outcome // "": the answer is rejected
	}{
		{lambdaidem.RecordHTTP, []string{"--status", "200"}, lambdaidem.OutcomeSucceeded},
		{lambdaidem.RecordHTTP, []string{"--status", "402"}, lambdaidem.OutcomeFailed},
		{lambdaidem.RecordHTTP, []string{"--status", "402", "--outcome", "succeeded"}, lambdaidem.OutcomeSucceeded},
		{lambdaidem.RecordHTTP, []string{"--status", "200", "--outcome", "failed"}, lambdaidem.OutcomeFailed},
		{lambdaidem.RecordHTTP, []string{"--status", "503", "--outcome", "failed"}, lambdaidem.OutcomeFailed},
		{lambdaidem.RecordHTTP, []string{"--status", "503"}, ""},
		{lambdaidem.RecordHTTP, []string{"--status", "429"}, ""},
		{lambdaidem.RecordHTTP, []string{"--answer-file", unavailable}, ""},
		{lambdaidem.RecordHTTP, []string{"--answer-file", unavailable, "--outcome", "failed"}, lambdaidem.OutcomeFailed},
		{lambdaidem.RecordHTTP, []string{"--answer-file", broken}, ""},
		{lambdaidem.RecordHTTP, []string{"--status", "200", "--outcome", "released"}, ""},
		{lambdaidem.RecordHTTP, []string{"--value", "1"}, ""},
		{lambdaidem.RecordHTTP, nil, ""},
		{lambdaidem.RecordValue, []string{"--value", "1"}, lambdaidem.OutcomeSucceeded},
		{lambdaidem.RecordValue, []string{"--value", "1", "--outcome", "failed"}, ""},
		{lambdaidem.RecordValue, []string{"--fail-code", "c", "--fail-message", "m"}, lambdaidem.OutcomeFailed},
		{lambdaidem.RecordValue, []string{"--fail-code", "c", "--value", "1"}, ""},
		{lambdaidem.RecordValue, nil, ""},
		{lambdaidem.RecordMessage, nil, lambdaidem.OutcomeSucceeded},
		{lambdaidem.RecordMessage, []string{"--outcome", "failed"}, ""},
		{lambdaidem.RecordMessage, []string{"--no-answer"}, lambdaidem.OutcomeFailed},
		{lambdaidem.RecordMessage, []string{"--no-answer", "--outcome", "succeeded"}, lambdaidem.OutcomeSucceeded},
		{lambdaidem.RecordHTTP, []string{"--status", "200", "--header", "content-type: application/json", "--body", `{"id":1`}, ""},
		{lambdaidem.RecordHTTP, []string{"--status", "200", "--header", "Content-Type: application/vnd.a+json; charset=utf-8", "--body", ""}, ""},
		{lambdaidem.RecordHTTP, []string{"--status", "200", "--header", "Content-Type: application/json", "--header", "Content-Encoding: gzip", "--body-file", zipped}, lambdaidem.OutcomeSucceeded},
		{lambdaidem.RecordHTTP, []string{"--status", "304", "--header", "Content-Type: application/json"}, lambdaidem.OutcomeSucceeded},
		{lambdaidem.RecordHTTP, []string{"--status", "200", "--header", "Content-Type: text/plain", "--body", `{"id":1`}, lambdaidem.OutcomeSucceeded},
		{lambdaidem.RecordHTTP, []string{"--status", "200", "--header", "X-Note: application/json", "--body", `{"id":1`}, lambdaidem.OutcomeSucceeded},
		{lambdaidem.RecordMessage, []string{"--status", "200"}, ""},
	} {
		var g givenAnswer
		flags := pflag.NewFlagSet("settle", pflag.ContinueOnError)
		g.flags(flags)
		if err := flags.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		got, err := g.result(t.Context(), &app{}, c.kind)
		if err == nil { // settle makes this check too
			err = lambdaidem.CheckResult(scopes[c.kind], got)
		}
		if got.Outcome != c.want && err == nil || (err == nil) != (c.want != "") {
			t.Errorf("%s %q: %q, %v; want %q", c.kind, c.args, got.Outcome, err, c.want)
		}
	}
}

// The errorType of a settled failure is its code, unless --fail-type sets another.
func TestO2_TheErrorTypeOfASettledFailure(t *testing.T) {
	for want, args := range map[string][]string{
		"card_declined": nil,
		"CardDeclined":  {"--fail-type", "CardDeclined"},
	} {
		var g givenAnswer
		flags := pflag.NewFlagSet("settle", pflag.ContinueOnError)
		g.flags(flags)
		if err := flags.Parse(append(args, "--fail-code", "card_declined", "--fail-message", "No.")); err != nil {
			t.Fatal(err)
		}
		got, err := g.result(t.Context(), &app{}, lambdaidem.RecordValue)
		if err != nil || got.Failure == nil || got.Failure.Type != want {
			t.Errorf("%q: %+v, %v; want the errorType %q", args, got.Failure, err, want)
		}
	}
}

// --max-skew 0 is allowed. It means that all clocks agree.
func TestO2_BoundsOfADecision(t *testing.T) {
	for _, c := range []struct {
		d    decisionFlags
		says string
	}{
		{decisionFlags{ttl: lambdaidem.MinTTL}, "Use --token"}, // the error is about the token, so the other values are accepted
		{decisionFlags{ttl: lambdaidem.MinTTL, maxSkew: -1}, "--max-skew at least 0"},
		{decisionFlags{ttl: lambdaidem.MinTTL - 1}, "--ttl must be at least 15m0s"},
	} {
		if _, _, _, err := c.d.prepare(&app{}, nil, nil, ""); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("--ttl %v --max-skew %v: %v; want %q", c.d.ttl, c.d.maxSkew, err, c.says)
		}
	}
}

// A held record has no expiry, so idem can't know how long it should last after a release. Without
// --ttl, release prints how long it will last.
func TestO2_AHeldRecordsTTLIsSaid(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-time.Hour)
	for key, c := range map[string]struct {
		guard *lambdaidem.Guard
		flags []string
		note  bool
	}{"held": {d.held(), nil, true}, "held with ttl": {d.held(), []string{"--ttl", "72h"}, false}, "dead": {d.guard, nil, false}} {
		d.pay(c.guard, key, died)
		v := d.view(key)
		g := d.idem(append([]string{"release", v.ID, "--token", v.Token, "--reason", "r", "--yes"}, c.flags...)...).want(t, exitDone)
		if strings.Contains(g.err, "24h0m0s from now") != c.note {
			t.Errorf("%s: it says %q", key, g.err)
		}
	}
}

// A file that is too large for any answer is rejected, not cut.
func TestO2_TooLargeAnAnswerIsRefused(t *testing.T) {
	tooLarge := io.LimitReader(zeros{}, maxAnswer+1)
	if _, err := read(t.Context(), &app{In: tooLarge}, "", "-"); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("the error is %v", err)
	}
}

// zeros is an endless reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

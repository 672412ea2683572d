package commands

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// lateDesk has a table in package memdynamo's database, and methods that run idem on it. offset is
// how far the database's clock is ahead of this machine's.
type lateDesk struct {
	t      *testing.T
	offset time.Duration
	store  *dynamostore.Store
	client *dynamodb.Client
	meets  func(body []byte) (throttled, replyLost bool) // decides how an UpdateItem with this body fails; nil if none fails
}

func (d *lateDesk) now() time.Time { return time.Now().Add(d.offset) }

func openLateDesk(t *testing.T) *lateDesk {
	d := &lateDesk{t: t}
	db := memdynamo.New(d.now)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op, body, err := memdynamo.Request(r)
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		var throttled, replyLost bool
		if op == "UpdateItem" && d.meets != nil {
			throttled, replyLost = d.meets(body)
		}
		if throttled {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow down"}`)
			return
		}
		status, header, out := db.Serve(op, body)
		if replyLost {
			panic(http.ErrAbortHandler)
		}
		for k, v := range header {
			w.Header()[k] = v
		}
		w.WriteHeader(status)
		_, _ = io.Copy(w, bytes.NewReader(out))
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none", "AWS_PROFILE": "", "IDEM_TABLE": "records", "IDEM_OPERATOR": "alice",
	} {
		t.Setenv(name, value)
	}
	d.client = dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String(server.URL),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		})})
	if err := dynamostore.CreateTable(t.Context(), d.client, "records"); err != nil {
		t.Fatal(err)
	}
	d.store = dynamostore.New(d.client, "records")
	return d
}

func (d *lateDesk) guard(policy lambdaidem.Policy) *lambdaidem.Guard {
	return lambdaidem.New(d.store, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Clock, o.Policy = "shop", lambdaidem.Discard, d.now, policy
	})
}

func (d *lateDesk) run(in io.Reader, asks bool, args ...string) (int, string) {
	var out bytes.Buffer
	code := Run(d.t.Context(), args, Streams{In: in, Asks: asks, Out: &out, Err: &out})
	return code, out.String()
}

var errCardNetwork = errors.New("the card network timed out")

// Show prints the token of an attempt, and the attempt then releases its record, because its
// handler had no effect. The token stays the same, so settle with this --token must refuse the
// released record unless --released is given.
func TestO2_SettleOfARecordThatWasReleasedSince(t *testing.T) {
	d := openLateDesk(t)
	g := d.guard(lambdaidem.Hold)
	runs := 0
	call := lambdaidem.Call{Operation: "charge", Key: "k"}
	record := []string{"--namespace", "shop", "--operation", "charge", "--key", "k"}
	var token string
	_, _ = lambdaidem.Do(t.Context(), g, call, func(context.Context) (string, error) {
		runs++
		d.offset += time.Hour // the attempt pauses until after the end of its lease
		_, text := d.run(strings.NewReader(""), false, append([]string{"show"}, record...)...)
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == "token" {
				token = f[1]
			}
		}
		return "", lambdaidem.Retryable(errCardNetwork)
	})
	settle := append([]string{"settle", "--token", token, "--reason", "TICKET-1", "--yes", "--value", `"paid"`}, record...)
	code, text := d.run(strings.NewReader(""), false, settle...)
	if code == 0 || !strings.Contains(text, "--released") {
		t.Errorf("settle ends with %d:\n%s", code, text)
	}
	if code, text := d.run(strings.NewReader(""), false, append(settle, "--released")...); code != 0 {
		t.Errorf("settle --released ends with %d:\n%s", code, text)
	}
	if got, err := lambdaidem.Do(t.Context(), g, call, func(context.Context) (string, error) { runs++; return "", nil }); got != "paid" || err != nil || runs != 1 {
		t.Errorf("a retry gets %q, %v; %d runs", got, err, runs)
	}
}

// If the machine sleeps while the operator is asked, settle must still use the current time,
// which it reads from the database.
func TestO2_SettleAfterSleepAtThePrompt(t *testing.T) {
	d := openLateDesk(t)
	g := d.guard(lambdaidem.Hold)
	call := lambdaidem.Call{Operation: "charge", Key: "k"}
	_, _ = lambdaidem.Do(t.Context(), g, call, func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errCardNetwork) })
	d.offset += time.Hour
	asleep := readerFunc(func(p []byte) (int, error) {
		d.offset += 30 * time.Hour
		return copy(p, "yes\n"), nil
	})
	if code, text := d.run(asleep, true, "settle", "--namespace", "shop", "--operation", "charge", "--key", "k", "--reason", "TICKET-1", "--value", `"paid"`); code != 0 {
		t.Fatalf("settle ends with %d:\n%s", code, text)
	}
	if got, err := lambdaidem.Do(t.Context(), g, call, func(context.Context) (string, error) { return "paid again", nil }); got != "paid" || err != nil {
		t.Errorf("a retry gets %q, %v", got, err)
	}
}

// Settle refuses a record that someone else has changed while the operator was asked.
func TestO2_WhatChangesAtThePromptIsNotSettled(t *testing.T) {
	d := openLateDesk(t)
	g := d.guard(lambdaidem.Hold)
	call := lambdaidem.Call{Operation: "charge", Key: "k"}
	_, _ = lambdaidem.Do(t.Context(), g, call, func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errCardNetwork) })
	d.offset += time.Hour
	record := []string{"--namespace", "shop", "--operation", "charge", "--key", "k", "--reason", "TICKET-1"}
	thinking := readerFunc(func(p []byte) (int, error) {
		if code, text := d.run(strings.NewReader("yes\n"), true, append([]string{"release"}, record...)...); code != 0 {
			t.Fatalf("release ends with %d:\n%s", code, text)
		}
		return copy(p, "yes\n"), nil
	})
	if code, text := d.run(thinking, true, append([]string{"settle", "--value", `"paid"`}, record...)...); code == 0 || !strings.Contains(text, "not any more what was shown") {
		t.Errorf("settle ends with %d:\n%s", code, text)
	}
}

// A purge changes a record but keeps its token and its state. settle --again must notice the
// change.
func TestO2_AnAnswerErasedAtThePromptIsNotSettledAgain(t *testing.T) {
	d := openLateDesk(t)
	call := lambdaidem.Call{Operation: "charge", Key: "k"}
	_, _ = lambdaidem.Do(t.Context(), d.guard(lambdaidem.Hold), call, func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errCardNetwork) })
	d.offset += time.Hour
	record := []string{"--namespace", "shop", "--operation", "charge", "--key", "k", "--reason", "TICKET-1"}
	if code, text := d.run(strings.NewReader("yes\n"), true, append([]string{"settle", "--value", `"paid"`}, record...)...); code != 0 {
		t.Fatalf("settle ends with %d:\n%s", code, text)
	}
	thinking := readerFunc(func(p []byte) (int, error) {
		if code, text := d.run(strings.NewReader(""), false, "purge", "--all", "--yes", "--reason", "TICKET-2"); code != 0 {
			t.Fatalf("purge ends with %d:\n%s", code, text)
		}
		return copy(p, "yes\n"), nil
	})
	code, text := d.run(thinking, true, append([]string{"settle", "--again", "--value", `"not paid"`}, record...)...)
	if code == 0 || !strings.Contains(text, "not any more what was shown") || !strings.Contains(text, "TICKET-2") {
		t.Errorf("settle --again ends with %d:\n%s", code, text)
	}
}

// --older-than compares ages by the database's clock, not by that of the operator's machine.
func TestO2_PurgeReckonsAgesByTheClockOfTheDatabase(t *testing.T) {
	d := openLateDesk(t)
	call := lambdaidem.Call{Operation: "charge", Key: "k"}
	if _, err := lambdaidem.Do(t.Context(), d.guard(lambdaidem.Rerun), call, func(context.Context) (string, error) { return "paid", nil }); err != nil {
		t.Fatal(err)
	}
	d.offset += 2 * time.Hour
	code, text := d.run(strings.NewReader(""), false, "purge", "--older-than", "1h", "--dry-run")
	if code != 0 || !strings.Contains(text, "1 record would be erased") {
		t.Errorf("purge ends with %d:\n%s", code, text)
	}
}

// No command of an operator makes a record expire earlier than it would have.
func TestL7_OperatorsShortenNoRecord(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for name, does := range map[string][]string{
		"purge --steps": {"purge", "--all", "--steps"},
		"release":       {"release", "--namespace", "shop", "--operation", "charge", "--key", "k"},
		"settle":        {"settle", "--namespace", "shop", "--operation", "charge", "--key", "k", "--value", `"paid"`},
	} {
		for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
			t.Run(name+"/"+string(policy), func(t *testing.T) {
				d := openLateDesk(t)
				g := lambdaidem.New(d.store, func(o *lambdaidem.Options) {
					o.Namespace, o.Observer, o.Clock, o.Policy, o.TTL = "shop", lambdaidem.Discard, d.now, policy, month
				})
				_, _ = lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "charge", Key: "k"}, func(ctx context.Context) (string, error) {
					_, err := lambdaidem.Step(ctx, "pay", func(context.Context) (string, error) { return "paid", nil })
					return "", errors.Join(err, lambdaidem.Uncertain(errCardNetwork))
				})
				d.offset += time.Hour
				id := g.RecordID(lambdaidem.Identity{Namespace: "shop", Operation: "charge", Key: "k"})
				before, err := d.store.Inspect(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				args := append(does, "--reason", "TICKET-1", "--yes")
				if name != "purge --steps" {
					args = append(args, "--token", before.Record.Token)
				}
				if code, text := d.run(strings.NewReader(""), false, args...); code != 0 {
					t.Fatalf("it ends with %d:\n%s", code, text)
				}
				after, err := d.store.Inspect(t.Context(), id)
				if err != nil || after.Record.State == before.Record.State {
					t.Fatalf("%v; the record is %s", err, after.Record.State)
				}
				switch was, is := before.Record.Expires, after.Record.Expires; {
				case policy == lambdaidem.Rerun && !is.Equal(was):
					t.Errorf("it expires at %v, and did at %v", is, was)
				case policy == lambdaidem.Hold && name == "purge --steps" && !is.IsZero():
					t.Errorf("it expires at %v; want never", is)
				}
			})
		}
	}
}

func TestO2_AShortTTLIsRefused(t *testing.T) {
	d := openLateDesk(t)
	if code, text := d.run(strings.NewReader(""), false, "release", "ID", "--token", "T", "--reason", "R", "--yes", "--ttl", "5m"); code == 0 || !strings.Contains(text, "15m") {
		t.Errorf("it ends with %d:\n%s", code, text)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// release releases a record as another operator would.
func (d *lateDesk) release(t *testing.T, id string) {
	seen, err := d.store.Inspect(t.Context(), id)
	if err != nil {
		t.Error(err)
		return
	}
	o, err := d.store.Operator("bob", "r")
	if err == nil {
		_, err = o.Release(t.Context(), seen)
	}
	if err != nil {
		t.Error(err)
	}
}

// Two records are released. The exit code must not say that nothing was changed if one of them was
// released, and must not say that the command failed if a release may have been applied.
func TestO2_ExitCodeOfSeveralReleases(t *testing.T) {
	const deny, lose, change = "deny", "lose", "change"
	for _, c := range []struct {
		name     string
		old, new string // what happens to the release of the older and of the newer record; "" if it succeeds
		want     int
	}{
		{"both are released", "", "", exitDone},
		{"denied, then the reply is lost", deny, lose, exitUnknown},
		{"the reply is lost, then denied", lose, deny, exitUnknown},
		{"released, then the reply is lost", "", lose, exitUnknown},
		{"released, then changed meanwhile", "", change, exitFailed},
		{"changed meanwhile, then released", change, "", exitFailed},
		{"both changed meanwhile", change, change, exitRefused},
		{"denied, then changed meanwhile", deny, change, exitRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			does := map[string]string{}
			d := openLateDesk(t)
			d.meets = func(body []byte) (throttled, replyLost bool) {
				for id, what := range does {
					if !bytes.Contains(body, []byte(id)) {
						continue
					}
					if what == change {
						delete(does, id)
						d.release(t, id)
					}
					return what == deny, what == lose
				}
				return false, false
			}
			var log []byte
			for i, key := range []string{"a", "b"} {
				who := lambdaidem.Identity{Namespace: "shop", Operation: "reserve", Key: key}
				at := d.now().Add(time.Duration(i-2) * time.Hour)
				rec, err := d.store.Acquire(t.Context(), lambdaidem.Claim{ID: d.guard(lambdaidem.Hold).RecordID(who), Scope: "shop  reserve ", Token: "token-of-" + key, Now: at, LeaseEnd: at.Add(time.Minute)})
				if err != nil {
					t.Fatal(err)
				}
				does[rec.ID] = []string{c.old, c.new}[i]
				log = append(log, neverStarted(rec)+"\n"...)
			}
			file := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(file, log, 0o600); err != nil {
				t.Fatal(err)
			}
			if code, text := d.run(strings.NewReader(""), false, "leases", "--scan", "--never-started", file, "--release", "--reason", "r", "--yes"); code != c.want {
				t.Errorf("the exit code is %d, want %d\n%s", code, c.want, text)
			}
		})
	}
}

// A record's scope does not say whether its path matches a route template, or whether a message's
// key is its own id. trace finds the record in each of these cases.
func TestO2_TraceFindsRecordsOfPathsAndOwnIDs(t *testing.T) {
	d := openLateDesk(t)
	g := d.guard(lambdaidem.Rerun)
	var downstream string
	if _, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "order", Key: "k"}, func(ctx context.Context) (string, error) {
		downstream = lambdaidem.DownstreamKey(ctx, "bank")
		return "ok", nil
	}); err != nil {
		t.Fatal(err)
	}
	in := events.LambdaFunctionURLRequest{RawPath: "/charges", Headers: map[string]string{"idempotency-key": downstream}, Body: "{}"}
	in.RequestContext.HTTP.Method = http.MethodPost
	charge := g.FunctionURL(func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		return events.LambdaFunctionURLResponse{StatusCode: http.StatusCreated}, nil
	})
	if out, err := charge(t.Context(), in); err != nil || out.StatusCode != http.StatusCreated {
		t.Fatal(out, err)
	}
	notify := g.SQS(func(context.Context, events.SQSMessage) error { return nil }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) { o.Operation = "notify" })
	if _, err := notify(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: downstream, EventSourceARN: "arn:q", Body: "{}"}}}); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []string{"shop POST /charges", "shop message notify"} {
		code, text := d.run(strings.NewReader(""), false, "trace", "--namespace", "shop", "--operation", "order", "--key", "k", "--then", "downstream:bank => "+scope)
		if code != exitDone || strings.Contains(text, "none without") || strings.Count(text, "completed") != 2 {
			t.Errorf("%s is not found: %d\n%s", scope, code, text)
		}
	}
	if _, text := d.run(strings.NewReader(""), false, "trace", "--namespace", "shop", "--operation", "order", "--key", "k", "--then", "downstream:bank => shop POST /refunds"); !strings.Contains(text, "none without") {
		t.Errorf("a record that is not there is shown:\n%s", text)
	}
}

// A record that leases --release has released lasts as long as --ttl says. If a write of a purge
// gets no reply, the exit code says that it may have been applied. show does not say of a forgotten
// record that an operator released it.
func TestO2_LeasesReleaseForATTL(t *testing.T) {
	d := openLateDesk(t)
	who := lambdaidem.Identity{Namespace: "shop", Operation: "reserve", Key: "a"}
	at := d.now().Add(-time.Hour)
	rec, err := d.store.Acquire(t.Context(), lambdaidem.Claim{ID: d.guard(lambdaidem.Hold).RecordID(who), Scope: "shop  reserve ", Token: "token-of-a", Now: at, LeaseEnd: at.Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(neverStarted(rec)), 0o600); err != nil {
		t.Fatal(err)
	}
	release := []string{"leases", "--scan", "--never-started", file, "--release", "--reason", "r", "--yes"}
	if code, text := d.run(strings.NewReader(""), false, append(release, "--ttl", "1s")...); code != exitUsage {
		t.Errorf("a TTL of a second is accepted: %d\n%s", code, text)
	}
	if code, text := d.run(strings.NewReader(""), false, append(release, "--ttl", "72h")...); code != exitDone {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	seen, err := d.store.Inspect(t.Context(), rec.ID)
	if left := seen.Record.Expires.Sub(seen.Now); err != nil || left < 71*time.Hour || left > 73*time.Hour {
		t.Errorf("the record lasts %v, %v", left, err)
	}
	if _, text := d.run(strings.NewReader(""), false, "show", rec.ID); !strings.Contains(text, "released: an operator decided") {
		t.Errorf("it is shown as\n%s", text)
	}
	d.meets = func([]byte) (throttled, replyLost bool) { return false, true }
	if code, text := d.run(strings.NewReader(""), false, "purge", "--namespace", "shop", "--forget", "--reason", "r", "--yes"); code != exitUnknown {
		t.Errorf("a purge whose write got no reply: exit code %d\n%s", code, text)
	}
	if _, text := d.run(strings.NewReader(""), false, "show", rec.ID); !strings.Contains(text, "forgotten") || !strings.Contains(text, "released: its last attempt failed") {
		t.Errorf("a forgotten record is shown as\n%s", text)
	}
}

// A caller can be found by the text that show prints, even if it contains a space, like most
// distinguished names, or a percent sign, like the callers of Auth0.
func TestO2_ACallerIsFoundAsShowPrintsIt(t *testing.T) {
	for _, principal := range []string{"mtls:CN=Ann Smith,O=Acme Ltd|CN=Acme CA", "jwt:https://shop.eu.auth0.com/|auth0%7C5f7c", "iam:arn:aws:iam::1:user/bob"} {
		d := openLateDesk(t)
		id := ""
		if _, err := lambdaidem.Do(t.Context(), d.guard(lambdaidem.Rerun), lambdaidem.Call{Operation: "order", Key: "k", Principal: principal}, func(ctx context.Context) (string, error) {
			id = lambdaidem.RecordID(ctx)
			return "paid", nil
		}); err != nil {
			t.Fatal(err)
		}
		_, text := d.run(strings.NewReader(""), false, "show", id)
		_, caller, _ := strings.Cut(text, "caller ")
		caller, _, _ = strings.Cut(caller, "\n")
		caller = strings.TrimSpace(caller)
		if caller != principal {
			t.Errorf("show prints the caller %q, want %q", caller, principal)
		}
		if code, text := d.run(strings.NewReader(""), false, "show", "--namespace", "shop", "--operation", "order", "--key", "k", "--caller", caller); code != exitDone {
			t.Errorf("%s is not found: %d %s", caller, code, text)
		}
		if _, text := d.run(strings.NewReader(""), false, "purge", "--caller", caller+"x", "--reason", "r", "--dry-run"); !strings.Contains(text, caller) {
			t.Errorf("a mistyped caller is not told of %s:\n%s", caller, text)
		}
		if _, text := d.run(strings.NewReader(""), false, "purge", "--caller", caller, "--reason", "r", "--yes"); !strings.Contains(text, "1 record erased") {
			t.Errorf("purge --caller %s:\n%s", caller, text)
		}
	}
}

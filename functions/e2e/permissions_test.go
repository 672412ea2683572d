package e2e_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// exercise makes every function do everything that it does in production.
func exercise(t *testing.T) {
	t.Helper()
	u := newUser(t)
	payment := u.pay(t, "pay-1")
	for path, body := range map[string]string{
		"/payments/" + payment + "/refunds": `{"amount":100}`,
		"/transfers":                        `{"to":"` + string(u) + `-till","amount":1,"currency":"EUR"}`,
	} {
		user(string(u)+"-till").open(t, 0)
		expectStatus(t, u.mustSend(t, request{path: path, keys: []string{"key" + path}, body: body}), http.StatusCreated)
	}
	for _, path := range []string{"/payments/" + payment, "/health"} {
		expectStatus(t, u.mustSend(t, request{method: http.MethodGet, path: path}), http.StatusOK)
	}
	leaveLease(t)
	if result, err := everything.Emulator().Invoke(t.Context(), "WatchFunction", []byte(`{}`)); err != nil || result.FunctionError != "" {
		t.Fatalf("the watch: %v %s %s", err, result.FunctionError, result.Payload)
	}
	awaitMail(t, payment)
}

// leaveLease leaves the lease of an attempt that died an hour ago.
func leaveLease(t *testing.T) {
	t.Helper()
	store := dynamostore.New(everything.Database().Client(), everything.Table("IdempotencyTable"), func(o *dynamostore.Options) {
		o.LeaseIndex, o.AttemptTimeout = "leases", time.Minute
	})
	crashing := idemtest.NewStore(store)
	guard := lambdaidem.New(crashing, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer = t.Name(), lambdaidem.Discard
		o.Clock = func() time.Time { return time.Now().Add(-time.Hour) }
	})
	pay := guard.APIGatewayV2(func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		crashing.Kill(ctx)
		return events.APIGatewayV2HTTPResponse{}, nil
	})
	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) {
		_, _ = pay(ctx, idemtest.Request{Path: "/payments", Key: "k"}.APIGatewayV2())
	})
}

// awaitMail waits for the mail about a payment. By then, the functions that read the table's
// stream and the queue have run.
func awaitMail(t *testing.T, payment string) {
	t.Helper()
	await(t, time.Minute, "the payer has a mail about "+payment, func() bool {
		for _, mail := range everything.Mailer().Effects() {
			if mail.Payment == payment {
				return true
			}
		}
		return false
	})
}

// withoutAction returns a copy of a template in which one statement of a function's role lacks
// an action.
func withoutAction(t *testing.T, from *template.Template, function string, statement int, action string) *template.Template {
	t.Helper()
	out := *from
	out.Functions = slices.Clone(from.Functions)
	for i, f := range out.Functions {
		if f.LogicalID != function {
			continue
		}
		changed := *f
		changed.Role.Statements = slices.Clone(f.Role.Statements)
		s := &changed.Role.Statements[statement]
		s.Actions = slices.DeleteFunc(slices.Clone(s.Actions), func(a string) bool { return a == action })
		if len(s.Actions) == 0 {
			changed.Role.Statements = slices.Delete(changed.Role.Statements, statement, statement+1)
		}
		out.Functions[i] = &changed
		return &out
	}
	t.Fatalf("the template has no function %s", function)
	return nil
}

// The roles allow what the functions do and nothing else: without any one action of any
// statement, something that the functions do is refused, and the refusal names the action.
func TestEveryPermissionIsNeeded(t *testing.T) {
	exercise(t)
	uses := everything.IAM().Uses()
	for _, use := range uses {
		if !use.Allowed {
			t.Errorf("%s was refused %s on %s", use.Function, use.Request.Action, use.Request.Resource)
		}
	}
	checked := 0
	for _, f := range everything.Template().Functions {
		for i, statement := range f.Role.Statements {
			for _, action := range statement.Actions {
				if strings.HasPrefix(action, "logs:") {
					continue // Lambda itself uses these
				}
				checked++
				checker, err := iam.New(withoutAction(t, everything.Template(), f.LogicalID, i, action))
				if err != nil {
					t.Fatal(err)
				}
				if !slices.ContainsFunc(uses, func(use iam.Use) bool {
					return use.Function == f.LogicalID && refuses(checker, use, action, statement.Resources)
				}) {
					t.Errorf("%s: %s works without %s on %q, which %s grants", statement.At, f.LogicalID, action, statement.Resources, statement.Policy)
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("%d permissions were checked; the template has more", checked)
	}
}

// refuses reports whether a request is refused, with an error that names the action and one of
// the resources.
func refuses(checker *iam.Checker, use iam.Use, action string, resources []string) bool {
	d := checker.Decide(use.Function, use.Request)
	return !d.Allowed && slices.ContainsFunc(resources, func(resource string) bool {
		names := "assumed-role/" + use.Function[:len(use.Function)-len("Function")] + "Role/" + use.Function +
			" is not authorized to perform: " + action + " on resource: " + resource + " because"
		return strings.Contains(strings.ToLower(d.Message), strings.ToLower(names))
	})
}

// A function whose role lacks a permission carries out no request that needs the permission, and
// its log names what is missing.
func TestS1_MissingPermissionIsNamed(t *testing.T) {
	u := newUser(t)
	var log bytes.Buffer // read after the stack has stopped
	s, err := stack.Start(t.Context(), stack.Options{FunctionLog: &log, Change: func(sam *template.Template) {
		remove(sam.Function("TransfersFunction"), "dynamodb:PutItem", "IdempotencyTable")
		remove(sam.Function("PaymentsFunction"), "dynamodb:UpdateItem", "AccountsTable")
	}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(r request) answer {
		r.keys = []string{"key-1"}
		a, err := u.sendTo(t.Context(), s.URL(), r)
		if err != nil {
			t.Error(err)
		}
		return a
	}
	claim := send(request{path: "/transfers", body: `{"to":"nobody","amount":1,"currency":"EUR"}`})
	enlisted := send(order("", dinner))
	health := send(request{method: http.MethodGet, path: "/health"})
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	expectProblem(t, claim, http.StatusServiceUnavailable, "idempotency_store_unavailable")
	expectProblem(t, enlisted, http.StatusInternalServerError, "idempotency_write_invalid")
	if health.status != http.StatusServiceUnavailable {
		t.Errorf("GET /health answers %d %s; want 503", health.status, health.body)
	}
	for role, missing := range map[string]string{
		"TransfersRole/TransfersFunction": "dynamodb:PutItem on resource: arn:aws:dynamodb:us-east-1:000000000000:table/" + s.Table("IdempotencyTable"),
		"PaymentsRole/PaymentsFunction":   "dynamodb:UpdateItem on resource: arn:aws:dynamodb:us-east-1:000000000000:table/" + s.Table("AccountsTable"),
	} {
		want := "User: arn:aws:sts::000000000000:assumed-role/" + role + " is not authorized to perform: " + missing + " because no identity-based policy allows"
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &log)
		}
	}
	for _, want := range []string{
		"iam: TransfersFunction was refused dynamodb:PutItem on ", // what the proxy says
		"add dynamodb:UpdateItem to the function's policy",        // what the health check says
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &log)
		}
	}
}

// remove removes an action on a table from the role of a function.
func remove(f *template.Function, action, table string) {
	for i, statement := range f.Role.Statements {
		if strings.Contains(statement.Resources[0], ":table/") && strings.Contains(statement.Resources[0], table) {
			f.Role.Statements[i].Actions = slices.DeleteFunc(slices.Clone(statement.Actions), func(a string) bool { return a == action })
		}
		if len(f.Role.Statements[i].Actions) == 0 {
			f.Role.Statements = slices.Delete(f.Role.Statements, i, i+1)
			return
		}
	}
}

package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// shiftedDesk is a table of the simulator's database, which needs no DynamoDB Local. The clocks of
// the database and of the guards are ahead of this machine's clock by offset.
type shiftedDesk struct {
	offset time.Duration
	client *dynamodb.Client
	table  string
}

func openShifted(t *testing.T) *shiftedDesk {
	t.Helper()
	d := &shiftedDesk{table: "records"}
	d.client = dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", HTTPClient: &memdynamo.Client{DB: memdynamo.New(d.now)},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	})
	if err := CreateTable(t.Context(), d.client, d.table); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *shiftedDesk) now() time.Time { return time.Now().Add(d.offset) }

// guard returns a guard that uses the store.
func (d *shiftedDesk) guard(s *Store, optFns ...func(*lambdaidem.Options)) *lambdaidem.Guard {
	return lambdaidem.New(s, append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Clock = "shop", lambdaidem.Discard, d.now
	}}, optFns...)...)
}

// pay calls the guarded operation of these tests.
func (d *shiftedDesk) pay(t *testing.T, g *lambdaidem.Guard, handler func(context.Context) (string, error)) (string, error) {
	t.Helper()
	return lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, handler)
}

// inspect returns the record of the operation that pay calls.
func (d *shiftedDesk) inspect(t *testing.T) Inspected {
	t.Helper()
	s := New(d.client, d.table)
	inspected, err := s.Inspect(t.Context(), d.guard(s).RecordID(lambdaidem.Identity{Operation: "pay", Key: "k"}))
	if err != nil {
		t.Fatal(err)
	}
	return inspected
}

func (d *shiftedDesk) operator(t *testing.T) *Operator {
	t.Helper()
	o, err := New(d.client, d.table).Operator("alice", "TICKET-1")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// before returns a client that calls f before it sends the nth request of an operation.
func (d *shiftedDesk) before(operation string, n int, f func()) *dynamodb.Client {
	return d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
		if isOperation(r, operation) {
			if n--; n == 0 {
				f()
			}
		}
		return send()
	})
}

// isOperation reports whether r is a request of DynamoDB's operation with the given name.
func isOperation(r *http.Request, name string) bool {
	return strings.HasSuffix(r.Header.Get(fieldTarget), "."+name)
}

// through returns a client whose requests go through do. The function send may be called more
// than once, and later.
func (d *shiftedDesk) through(do func(r *http.Request, body []byte, send func() (*http.Response, error)) (*http.Response, error)) *dynamodb.Client {
	return dynamodb.New(d.client.Options(), func(o *dynamodb.Options) {
		next := o.HTTPClient
		o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			return do(r, body, func() (*http.Response, error) {
				again := r.Clone(context.WithoutCancel(r.Context()))
				again.Body = io.NopCloser(bytes.NewReader(body))
				return next.Do(again)
			})
		})
	})
}

// die leaves the record of an attempt that died after a step.
func (d *shiftedDesk) die(t *testing.T) {
	t.Helper()
	_, err := d.pay(t, d.guard(New(d.client, d.table)), func(ctx context.Context) (string, error) {
		if _, err := lambdaidem.Step(ctx, "card", func(context.Context) (int, error) { return 7, nil }); err != nil {
			return "", err
		}
		return "", lambdaidem.Uncertain(errLater)
	})
	if !errors.Is(err, errLater) {
		t.Fatal(err)
	}
}

// dieAndBeReleased leaves a record whose attempt has died, and which an operator has released.
func (d *shiftedDesk) dieAndBeReleased(t *testing.T) {
	t.Helper()
	d.die(t)
	time.Sleep(10 * time.Minute) // the lease ends
	if _, err := d.operator(t).Release(t.Context(), d.inspect(t)); err != nil {
		t.Fatal(err)
	}
}

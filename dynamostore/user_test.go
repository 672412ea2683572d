package dynamostore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// userBank is a guard on a real store, next to a table of accounts, like a user would have.
type userBank struct {
	client            *dynamodb.Client
	wire              *userWire
	store             *dynamostore.Store
	records, accounts string
	guard             *lambdaidem.Guard
}

type userAccount struct {
	ID      string `dynamodbav:"id"`
	Balance int    `dynamodbav:"balance"`
}

type userKey struct {
	ID string `dynamodbav:"id"`
}

func userTable(t *testing.T, client *dynamodb.Client) string {
	t.Helper()
	table := "user-" + rand.Text()
	if err := dynamostore.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &table})
		if err != nil {
			t.Error(err)
		}
	})
	return table
}

func newUserBank(t *testing.T, optFns ...func(*lambdaidem.Options)) *userBank {
	t.Helper()
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	b := &userBank{client: server.Client()}
	b.records, b.accounts = userTable(t, b.client), userTable(t, b.client)
	b.wire = &userWire{next: b.client.Options().HTTPClient}
	faulty := dynamodb.New(b.client.Options(), func(o *dynamodb.Options) { o.HTTPClient = b.wire })
	b.store = dynamostore.New(faulty, b.records)
	b.guard = lambdaidem.New(b.store, append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) {
		o.Namespace, o.Observer = "bank", lambdaidem.Discard
	}}, optFns...)...)
	return b
}

func (b *userBank) set(t *testing.T, id string, balance int) {
	t.Helper()
	item, err := attributevalue.MarshalMap(userAccount{id, balance})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.accounts, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// balance returns the balance of an account, or -1 if there is no such account.
func (b *userBank) balance(t *testing.T, id string) int {
	t.Helper()
	out, err := b.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.accounts, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}})
	if err != nil {
		t.Fatal(err)
	}
	a := userAccount{Balance: -1}
	if err := attributevalue.UnmarshalMap(out.Item, &a); err != nil {
		t.Fatal(err)
	}
	return a.Balance
}

// add enlists a write that adds the amount to the balance of an account. If the amount is negative,
// the account must have enough money.
func (b *userBank) add(ctx context.Context, id string, amount int) *dynamostore.Write {
	w := dynamostore.Enlist(ctx).UpdateValue("add to "+id, b.accounts, userKey{id}, "SET balance = balance + :amount", dynamostore.Args{":amount": amount})
	if amount < 0 {
		w.If("balance >= :least", dynamostore.Args{":least": -amount})
	}
	return w
}

// userWire can delay a request: the caller's connection breaks, and the request arrives when arrive
// is called.
type userWire struct {
	next dynamodb.HTTPClient

	mu     sync.Mutex
	keep   string // the operation whose next request is delayed
	broken string // the operation whose requests never arrive
	kept   func() (int, string, error)
}

func (w *userWire) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	switch {
	case w.broken == operation:
		return nil, reset
	case w.keep == operation:
		w.keep = ""
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		late := r.Clone(context.WithoutCancel(r.Context()))
		w.kept = func() (int, string, error) {
			late.Body, late.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			resp, err := w.next.Do(late)
			if err != nil {
				return 0, "", err
			}
			defer func() { _ = resp.Body.Close() }()
			said, err := io.ReadAll(resp.Body)
			return resp.StatusCode, string(said), err
		}
		return nil, reset
	}
	return w.next.Do(r)
}

func (w *userWire) keepBack(operation string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep = operation
}

func (w *userWire) breakAll(operation string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = operation
}

// arrive delivers the delayed request.
func (w *userWire) arrive(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	late := w.kept
	w.mu.Unlock()
	if late == nil {
		t.Fatal("no request was kept back")
	}
	status, said, err := late()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the late request was answered %d %s", status, said)
}

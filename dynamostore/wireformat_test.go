package dynamostore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// keeper is an HTTP client that records the requests. It responds to an UpdateItem with the item of
// a lock.
type keeper struct{ requests []map[string]any }

func (s *keeper) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if !jsontext.Value(body).IsValid() { // such as a member that occurs twice
		return nil, fmt.Errorf("%s is not valid", body)
	}
	one := map[string]any{}
	if err := json.Unmarshal(body, &one); err != nil {
		return nil, err
	}
	s.requests = append(s.requests, map[string]any{operation: one})
	if operation == "UpdateItem" {
		return answer(200, lockedOld.body), nil
	}
	return answer(200, `{}`), nil
}

// sentByEveryVerb returns the requests of a store: a lock, a takeover, a save of steps, a
// completion with an answer, one with a failure, a release, and a read. Three transactions follow:
// with a lease, with a claim, and with a claim over an existing record.
func sentByEveryVerb(t *testing.T, optFns ...func(*Options)) []map[string]any {
	t.Helper()
	wire := &keeper{}
	s := New(dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://127.0.0.1:1"), HTTPClient: wire,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}), "idempotency", optFns...)
	c, over := golden.claim, golden.claim
	lease := lambdaidem.Lease{ID: c.ID, Token: c.Token, Expires: goldenTime.Add(2 * time.Hour)}
	over.Token, over.Now, over.LeaseEnd, over.Expires = "token-of-attempt-2", c.Now.Add(time.Minute), c.LeaseEnd.Add(time.Minute), c.Expires.Add(time.Minute)
	current := claimed(c).record()
	over.Over = &current
	ctx := t.Context()
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(s.Acquire(ctx, c))
	do(s.Acquire(ctx, over))
	do(s.SaveSteps(ctx, lease, lambdaidem.Steps{"card": []byte("7")}, goldenTime))
	do(s.Complete(ctx, lease, golden.text))
	do(s.Complete(ctx, lease, golden.failed))
	do(s.Release(ctx, lease, goldenTime))
	do(s.Get(ctx, c.ID, goldenTime))
	for _, claim := range []*lambdaidem.Claim{nil, &c, &over} {
		tx := s.Begin(bytes.NewReader(make([]byte, 16)))
		tx.(*transaction).enlisted.Put("payment", types.Put{TableName: aws.String("payments"), Item: attributes{"id": str("p1")}})
		tx.Seal(lambdaidem.OutcomeSucceeded)
		of := lease
		if claim != nil {
			of.Token = claim.Token
		}
		do(tx.Commit(ctx, &lambdaidem.Completion{Lease: of, Result: golden.text, Claim: claim}))
	}
	return wire.requests
}

// With the default options, a store sends exactly the requests in the file. Optional features add
// nothing to them.
func TestD4_RequestsAreWhatTheyWere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "requests.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want []map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, sentByEveryVerb(t)); diff != "" {
		t.Errorf("file - today +:\n%s", diff)
	}
}

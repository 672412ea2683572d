package dynamostore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// canned is an HTTP client that gives the same response to every request, so that a benchmark
// measures only the work of this process.
type canned struct {
	status int
	body   string
}

func (c canned) Do(*http.Request) (*http.Response, error) { return answer(c.status, c.body), nil }

func (c canned) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		Credentials:  aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("local", "local", "")),
		BaseEndpoint: aws.String("http://127.0.0.1:1"),
		HTTPClient:   c,
	})
}

// DynamoDB's responses to a lock, to a completion, and to a lock on a completed record.
var (
	written   = canned{200, `{}`}
	lockedOld = canned{200, `{"Attributes":` + itemJSON(claimed(claim)) + `}`}
	refused   = canned{400, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",` +
		`"Message":"The conditional request failed","Item":` + itemJSON(completedItem()) + `}`}
)

func completedItem() *item {
	itm := claimed(claim)
	r := result
	r.Value = []byte(`{"statusCode":201,"headers":{"Content-Type":"application/json"},"body":"` + strings.Repeat("x", 200) + `"}`)
	itm.finish(r)
	return itm
}

// itemJSON returns an item in DynamoDB's JSON.
func itemJSON(itm *item) string {
	attrs := standardLayout.attributes(itm)
	wire := make(map[string]map[string]string, len(attrs))
	for name, v := range attrs {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			wire[name] = map[string]string{"S": v.Value}
		case *types.AttributeValueMemberN:
			wire[name] = map[string]string{"N": v.Value}
		default:
			panic("itemJSON knows strings and numbers")
		}
	}
	text, err := json.Marshal(wire)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// BenchmarkStore measures the cost of each method in this process, including the SDK.
func BenchmarkStore(b *testing.B) {
	b.Run("lock", func(b *testing.B) {
		s := New(written.client(), "idempotency")
		measure(b, func(ctx context.Context) error { _, err := s.Acquire(ctx, claim); return err })
	})
	b.Run("complete", func(b *testing.B) {
		s := New(lockedOld.client(), "idempotency")
		measure(b, func(ctx context.Context) error { _, err := s.Complete(ctx, lease, result); return err })
	})
	b.Run("replay", func(b *testing.B) {
		s := New(refused.client(), "idempotency")
		measure(b, func(ctx context.Context) error {
			rec, err := s.Acquire(ctx, claim)
			if err == nil && rec.State != lambdaidem.Completed {
				err = errors.New("the record is not completed")
			}
			return err
		})
	})
}

// BenchmarkBareSDK is the lower bound for BenchmarkStore: it sends the same requests, already
// built, with a client that has default options.
func BenchmarkBareSDK(b *testing.B) {
	for name, c := range map[string]canned{"lock": written, "replay": refused} {
		b.Run(name, func(b *testing.B) {
			client, in := c.client(), lockInput(b)
			measure(b, func(ctx context.Context) error {
				_, err := client.PutItem(ctx, in)
				if met := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &met) {
					return nil
				}
				return err
			})
		})
	}
}

// lockInput returns the PutItem with which a store locks a record.
func lockInput(tb testing.TB) *dynamodb.PutItemInput {
	tb.Helper()
	s := New(written.client(), "idempotency")
	w, given := &s.writes.lock, given{now: claim.Now}
	return &dynamodb.PutItemInput{
		TableName:                           aws.String(s.table),
		Item:                                s.layout.attributes(claimed(claim)),
		ConditionExpression:                 aws.String(w.condition),
		ExpressionAttributeNames:            w.names,
		ExpressionAttributeValues:           given.attributes(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func measure(b *testing.B, do func(context.Context) error) {
	b.ReportAllocs()
	ctx := b.Context()
	for b.Loop() {
		if err := do(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncryption measures what encryption costs the process. For comparison: a request to
// DynamoDB takes about a millisecond.
func BenchmarkEncryption(b *testing.B) {
	k := keyOf("k1")
	for _, size := range []int{1 << 10, 16 << 10, 1 << 20} {
		text := bytes.Repeat([]byte("a"), size)
		stored := k.seal("idem#test", "token-1", "sealed value", text)
		b.Run(fmt.Sprintf("seal/%dKB", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k.seal("idem#test", "token-1", "sealed value", text)
			}
		})
		b.Run(fmt.Sprintf("open/%dKB", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				of, err := parseSealed(stored)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := of.open(k, "idem#test", "sealed value"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

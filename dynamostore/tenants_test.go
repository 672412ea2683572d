package dynamostore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// tenants is the database of many tenants, each with its own id. It is also an HTTP client that is
// as careless as an HTTP client may be: it responds before it has read the request, and continues
// to read afterwards.
type tenants struct {
	t       *testing.T
	reading sync.WaitGroup
}

func (c *tenants) Do(r *http.Request) (*http.Response, error) {
	tenant := r.Context().Value(tenantKey{}).(string)
	c.reading.Add(1)
	half := make([]byte, r.ContentLength/2)
	begun := make(chan struct{})
	go func() {
		defer c.reading.Done()
		n, err := io.ReadFull(r.Body, half)
		close(begun)
		rest, more := io.ReadAll(r.Body)
		if err != nil || more != nil {
			if more == nil || !strings.Contains(more.Error(), "closed") {
				return // the SDK closes the body when the call ends
			}
		}
		if whole := append(half[:n:n], rest...); len(whole) == int(r.ContentLength) {
			c.check(tenant, whole)
		}
	}()
	if rand.IntN(2) == 0 {
		<-begun
	}
	_, operation, _ := strings.Cut(r.Header.Get(fieldTarget), ".")
	return c.answer(operation, tenant)
}

// check fails the test if a request contains anything of another tenant.
func (c *tenants) check(tenant string, body []byte) {
	if !json.Valid(body) || bytes.Count(body, []byte("tenant-")) != bytes.Count(body, []byte(tenant+"|")) || !bytes.Contains(body, []byte(tenant+"|")) {
		c.t.Errorf("a request of %s is %.200q", tenant, body)
	}
}

type tenantKey struct{}

// answer returns a response with only the tenant's own data. Chance decides its kind.
func (c *tenants) answer(operation, tenant string) (*http.Response, error) {
	itm := claimed(tenantsClaim(tenant))
	itm.finish(withValue([]byte(strings.Repeat(tenant+"|", 1+rand.IntN(3000)))))
	refusal := `{"__type":"` + conditionCode + `","Message":"no","Item":` + itemJSON(itm) + `}`
	switch n := rand.IntN(20); {
	case n == 0:
		return loseRequest(nil, nil)
	case n == 1:
		return throttle(nil, nil)
	case n == 2:
		return answer(200, `{"Attributes":{"id":{"S":"`+tenant), nil
	case operation == opGetItem:
		return answer(200, `{"Item":`+itemJSON(itm)+`}`), nil
	case operation == opPutItem && n < 12:
		return answer(400, refusal), nil
	case operation == opUpdateItem && n < 8:
		return answer(400, refusal), nil
	case operation == opUpdateItem:
		return answer(200, `{"Attributes":`+itemJSON(claimed(tenantsClaim(tenant)))+`}`), nil
	}
	return answer(200, `{}`), nil
}

func tenantsClaim(tenant string) lambdaidem.Claim {
	c := claim
	c.ID, c.Scope, c.Fingerprint, c.Token = tenant+"|id", tenant+"|scope", tenant+"|print", tenant+"|token"
	return c
}

// No request and no response of one tenant's call contains data of another tenant, although calls
// share buffers.
func TestG3_NothingOfOneCallIsInAnother(t *testing.T) {
	both(t, func(t *testing.T, by func(*Options)) {
		client, _ := inMemory()
		wire := &tenants{t: t}
		s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = wire }), "test", quick, by,
			func(o *Options) { o.CompressFrom = 1 << 20 })
		var calls sync.WaitGroup
		for n := range 8 {
			calls.Go(func() {
				for i := range 12 {
					asTenant(t, s, fmt.Sprintf("tenant-%d-%d", n, i))
				}
			})
		}
		calls.Wait()
		wire.reading.Wait()
	})
}

func asTenant(t *testing.T, s *Store, tenant string) {
	ctx, c := context.WithValue(t.Context(), tenantKey{}, tenant), tenantsClaim(tenant)
	l := lambdaidem.Lease{ID: c.ID, Token: c.Token, Expires: lease.Expires}
	own := withValue([]byte(strings.Repeat(tenant+"|", 1+rand.IntN(2000))))
	var kept []lambdaidem.Record
	see := func(rec lambdaidem.Record, err error) {
		if text := fmt.Sprintf("%s %s %s %s %s", rec.ID, rec.Scope, rec.Token, rec.Fingerprint, rec.Result.Value); strings.Count(text, "tenant-") != strings.Count(text, tenant+"|") {
			t.Errorf("%s sees %.200q", tenant, text)
		}
		if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), tenant, ""), "tenant-") {
			t.Errorf("%s sees %v", tenant, err)
		}
		if rejected, ok := errors.AsType[*lambdaidem.Rejected](err); ok {
			t.Errorf("%s is rejected: %v", tenant, rejected)
		}
		kept = append(kept, rec)
	}
	see(s.Acquire(ctx, c))
	see(s.SaveSteps(ctx, l, lambdaidem.Steps{tenant + "|step": []byte(tenant + "|result")}, now))
	see(s.Complete(ctx, l, own))
	see(s.Get(ctx, c.ID, now))
	see(s.Release(ctx, l, now))
	tx, _ := s.Begin(strings.NewReader(strings.Repeat("r", 64))).(*transaction)
	tx.enlisted.Put("order", types.Put{TableName: &s.table, Item: attributes{"id": str(tenant + "|order")}})
	see(tx.Commit(ctx, &lambdaidem.Completion{Lease: l, Result: own}))
	for _, rec := range kept { // later calls have used the buffers since
		if text := string(rec.Result.Value); strings.Count(text, "tenant-") != strings.Count(text, tenant+"|") {
			t.Errorf("%s kept %.200q", tenant, text)
		}
	}
}

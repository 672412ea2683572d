//go:build chaos

package chaos

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// kind is the purpose of a request to DynamoDB.
type kind string

const (
	acquire    kind = "acquire"
	takeover   kind = "takeover"
	completion kind = "completion" // with the enlisted writes, if there are any
	release    kind = "release"
	reserve    kind = "reserve" // reserves the money of a transfer, before the outside call
	step       kind = "step"    // saves the result of a step
)

// breakage is a fault that a test plans.
type breakage struct {
	kind  kind
	fault proxy.Fault
	times int // the number of requests that meet the fault; 0: one
}

// always is a breakage's times for every request: a number that no retries reach.
const always = 1 << 30

// wires decides what happens to each request to DynamoDB. It plans by key, because tests with
// different keys run in parallel.
type wires struct {
	mu   sync.Mutex
	keys map[string]string // by the record's id
	todo map[string][]breakage
	hits map[string]int // the number of requests that were broken, by key

	otherwise func(kind) proxy.Fault // for requests of a known kind without a planned fault; nil: they pass
}

func newWires() *wires {
	return &wires{keys: map[string]string{}, todo: map[string][]breakage{}, hits: map[string]int{}}
}

// plan adds faults for the requests of a key. Faults of the same kind happen in the given order.
func (w *wires) plan(key string, breakages ...breakage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range breakages {
		b.times = max(b.times, 1)
		w.todo[key] = append(w.todo[key], b)
	}
}

// mend lets all requests of a key pass from now on.
func (w *wires) mend(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.todo, key)
}

// expectHits checks that at least so many requests of a key were broken.
func (w *wires) expectHits(t *testing.T, key string, least int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hits[key] < least {
		t.Errorf("%d calls were broken; want %d at least: the test proved nothing", w.hits[key], least)
	}
}

func (w *wires) choose(r *proxy.Request) proxy.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind, key := w.classify(r)
	todo := w.todo[key]
	i := slices.IndexFunc(todo, func(b breakage) bool { return b.kind == kind })
	if i < 0 {
		if w.otherwise != nil && kind != "" {
			return w.otherwise(kind)
		}
		return nil
	}
	w.hits[key]++
	fault := todo[i].fault
	if todo[i].times--; todo[i].times == 0 {
		w.todo[key] = slices.Delete(todo, i, i+1)
	}
	return fault
}

// classify returns the kind of a request and the key that it belongs to. Both are empty for a
// request that it doesn't know. Each key of these tests has a user of its own, whose name is in
// the record's scope and in the account's ID.
func (w *wires) classify(r *proxy.Request) (kind, string) {
	type write struct {
		Item, Key                 map[string]text
		ExpressionAttributeValues map[string]text
	}
	var call struct {
		write

		TransactItems []struct{ Put, Update write }
	}
	if json.Unmarshal(r.Body, &call) != nil {
		return "", ""
	}
	switch r.Operation {
	case "PutItem":
		key := keyOf(call.Item["scope"].S)
		w.keys[call.Item["id"].S] = key
		return acquire, key
	case "UpdateItem":
		kinds := map[string]kind{"COMPLETED": completion, "RELEASED": release, "INPROGRESS": takeover, "": step}
		return kinds[call.ExpressionAttributeValues[":status"].S], w.keys[call.Key["id"].S]
	case "TransactWriteItems":
		if id := call.TransactItems[0].Update.Key["id"].S; id != "" {
			return completion, w.keys[id]
		}
		return reserve, userOf(call.TransactItems[1].Update.Key["id"].S, " ") // the record's comes first, then the debit
	}
	return "", ""
}

// text is a DynamoDB attribute; S is empty unless the attribute is a string.
type text struct{ S string }

// keyOf returns the key of the request whose record has this scope, or "" for the record of a
// reservation. A reservation is an inner call of a transfer's handler, with the same user.
func keyOf(scope string) string {
	if !strings.Contains(scope, " POST ") {
		return ""
	}
	return userOf(scope, "|")
}

// userOf returns the text after the last separator.
func userOf(s, separator string) string { return s[strings.LastIndex(s, separator)+1:] }

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

// kind is what a call of DynamoDB's API is for.
type kind string

const (
	acquire    kind = "acquire"
	takeover   kind = "takeover"
	completion kind = "completion" // with what was enlisted, if anything was
	release    kind = "release"
	reserve    kind = "reserve" // of a transfer, before its outside call
	step       kind = "step"    // the result of one is saved
)

// breakage is one thing to go wrong.
type breakage struct {
	kind  kind
	fault proxy.Fault
	times int // how often; 0: once
}

// always is more often than anything is retried.
const always = 1 << 30

// wires decide what becomes of each call, by the key that it belongs to: tests
// run side by side.
type wires struct {
	mu   sync.Mutex
	keys map[string]string // by the record's id
	todo map[string][]breakage
	hits map[string]int // breakages that happened, by key

	otherwise func(kind) proxy.Fault // for known calls that nothing is planned for; nil: they pass
}

func newWires() *wires {
	return &wires{keys: map[string]string{}, todo: map[string][]breakage{}, hits: map[string]int{}}
}

// plan arranges what goes wrong for a key, in this order for each kind.
func (w *wires) plan(key string, breakages ...breakage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range breakages {
		b.times = max(b.times, 1)
		w.todo[key] = append(w.todo[key], b)
	}
}

// mend lets everything of a key pass from now on.
func (w *wires) mend(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.todo, key)
}

// expectHits checks that what was to go wrong did.
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

// classify tells what a call is for, and whose. Each key of these tests has a
// user of its own, who stands in the record's scope and in the account's id.
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

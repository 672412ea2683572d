package window

import (
	"cmp"
	"maps"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

// attributeNames are the names of the attributes of a table's records, by the placeholders of
// package dynamostore. A function's store can rename them; see dynamostore.Options. The names
// are known from the requests that have them.
type attributeNames map[string]string

func (n attributeNames) status() string      { return cmp.Or(n["#status"], "status") }
func (n attributeNames) expiration() string  { return cmp.Or(n["#expiration"], "expiration") }
func (n attributeNames) steps() string       { return cmp.Or(n["#steps"], "steps") }
func (n attributeNames) fingerprint() string { return cmp.Or(n["#validation"], "validation") }
func (n attributeNames) leaseEnd() string    { return cmp.Or(n["#lease_end"], "in_progress_expiration") }

// setOptions has a store use the names.
func (n attributeNames) setOptions(o *dynamostore.Options) {
	o.StatusAttribute, o.ExpirationAttribute, o.InProgressExpirationAttribute = n.status(), n.expiration(), n.leaseEnd()
	o.DataAttribute, o.ValidationAttribute = n["#data"], n["#validation"] // empty: the default
}

// noticeNames notes the names that a request has. The caller has w.mu.
func (w *Window) noticeNames(a rehearsal.Access) {
	if a.Record == "" {
		return
	}
	names := maps.Clone(w.attributes[a.Table])
	if names == nil {
		names = attributeNames{}
	}
	maps.Copy(names, a.Names)
	w.attributes[a.Table] = names
}

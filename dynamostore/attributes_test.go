package dynamostore

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// itemAttributes has each field of an item exactly once.
func TestEveryFieldOfAnItemIsOneAttribute(t *testing.T) {
	itm := &item{}
	at := map[uintptr]string{}
	for _, a := range itemAttributes {
		v := reflect.ValueOf(a.field(itm))
		if v.Kind() == reflect.Struct { // follow a pointer to the field
			v = v.Field(0)
		}
		if other, taken := at[v.Pointer()]; taken {
			t.Errorf("%s and %s are one field", a.standard, other)
		}
		at[v.Pointer()] = a.standard
	}
	fields := reflect.ValueOf(itm).Elem()
	for i := range fields.NumField() {
		if _, ok := at[fields.Field(i).Addr().Pointer()]; !ok {
			t.Errorf("no attribute keeps item.%s", fields.Type().Field(i).Name)
		}
	}
	if itemAttributes[0].standard != attrID {
		t.Errorf("the first attribute is %s; want the key", itemAttributes[0].standard)
	}
}

// For each kind of update, setBy marks every attribute that the update can change in an item.
func TestAnUpdateWritesEveryAttributeThatItsVerbChanges(t *testing.T) {
	failed := lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, At: result.At, Expires: result.Expires, Failure: &lambdaidem.Failure{Message: "m"}}
	for _, c := range []struct {
		name   string
		set    updates
		change func(*item)
	}{
		{"takeover", takeover, func(itm *item) {
			next := claim
			next.Over = &lambdaidem.Record{Attempt: 1}
			next.Now, next.LeaseEnd, next.Expires = now.Add(time.Hour), now.Add(time.Hour), now.Add(time.Hour+time.Second)
			next.Token, next.Scope, next.Fingerprint, next.Invocation = "token-2", "other", "f2", "invocation-2"
			*itm = *claimed(next)
		}},
		{"takeover of what was completed before", takeover, func(itm *item) { itm.finish(result); itm.Failure = failed.Failure }},
		{"takeover of what functions that encrypt began", takeover, func(itm *item) { itm.Encrypts = cipherName }},
		{"takeover of what was released before", takeover, func(itm *item) { itm.LastFailure = "http_503" }},
		{"completion", completion, func(itm *item) { itm.finish(result) }},
		{"completion by a failure", completion, func(itm *item) { itm.finish(failed) }},
		{"save of steps", saving, func(itm *item) { itm.setSteps(encodedSteps, twoSteps) }},
		{"completion after steps", completion, func(itm *item) {
			itm.setSteps(encodedSteps, twoSteps)
			itm.finish(result)
		}},
		{"release", release, func(itm *item) { itm.release(lease.Expires, "http_503", "downstream_key") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := claimed(claim), claimed(claim)
			before.LeaseShard, after.LeaseShard = "7", "7"
			c.change(after)
			for _, a := range itemAttributes {
				changed := !cmp.Equal(valueOf(a.field(before)), valueOf(a.field(after)), avOptions)
				if changed && a.setBy&c.set == 0 {
					t.Errorf("%s changes, and the update leaves it as it was", a.standard)
				}
			}
		})
	}
}

// DynamoDB refuses an expression with an undefined placeholder, and a name that no expression uses.
func TestEveryExpressionHasExactlyItsNames(t *testing.T) {
	indexed := (&Options{IDAttribute: attrID, StatusAttribute: attrStatus, ExpirationAttribute: attrExpiration, LeaseIndex: "leases",
		InProgressExpirationAttribute: attrLeaseEnd, DataAttribute: attrData, ValidationAttribute: attrValidation}).layout()
	for _, of := range []*layout{standardLayout, indexed} {
		everyExpressionHasExactlyItsNames(t, of)
	}
}

func everyExpressionHasExactlyItsNames(t *testing.T, of *layout) {
	t.Helper()
	l := of.writes("test")
	for _, w := range []write{l.lock, l.takeover, l.completion, l.release, l.saving, l.resealing, l.probe} {
		for _, itm := range []*item{fullItem(), {}} {
			text := w.condition + " " + of.expression(w.sets, itm, attributes{})
			used := map[string]bool{}
			for _, p := range regexp.MustCompile(`#\w+`).FindAllString(text, -1) {
				used[p] = true
			}
			named := map[string]bool{}
			for p := range w.names {
				named[p] = true
			}
			if diff := cmp.Diff(used, named, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%q: used - named +:\n%s", text, diff)
			}
		}
	}
}

// The package's documentation lists every attribute, and nothing else.
func TestTheDocumentationListsEveryAttribute(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "// # The item\n")
	list, _, _ = strings.Cut(list, "// The first six")
	var documented, known []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(\w+)`).FindAllStringSubmatch(list, -1) {
		documented = append(documented, m[1])
	}
	for _, a := range itemAttributes {
		if a.standard != attrSortKey { // the sort key has no standard name
			known = append(known, a.standard)
		}
	}
	slices.Sort(documented)
	slices.Sort(known)
	if diff := cmp.Diff(known, documented); diff != "" {
		t.Errorf("known - documented +:\n%s", diff)
	}
}

// fullItem returns an item with every attribute. No valid record has all of them.
func fullItem() *item {
	n := integer{1, true}
	return &item{
		ID: "x", Status: "x", Token: "x", Attempt: n, LeaseEnd: n, Expiration: n, Validation: "x", Scope: "x", StartedAt: n, CompletedAt: n,
		Outcome: "x", Data: []byte("x"), Failure: &lambdaidem.Failure{Code: "x"}, Encoding: optionalText{"x", true},
		Parts: &parts{Checksum: []byte("x")}, Steps: lambdaidem.Steps{"x": []byte("x")}, LeaseShard: "x", Invocation: "x", LastFailure: "x", Encrypts: "x",
	}
}

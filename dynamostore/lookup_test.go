package dynamostore_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A call that reads the record first gets the same result as a call that locks first: the stored
// answer, however it is stored, or the same error if the answer is gone or can't be decrypted.
func TestR5_ALookUpReplaysWhateverIsStored(t *testing.T) {
	key := func(id string) dynamostore.Encryption {
		return dynamostore.StaticKeys(dynamostore.Key{ID: id, Secret: bytes.Repeat([]byte{id[0]}, 32)})
	}
	noise := strings.Repeat("0123456789abcdef", 4096) // 64 KB: several parts without compression
	for name, set := range map[string]func(*dynamostore.Options){
		"in the record":        func(*dynamostore.Options) {},
		"in parts":             func(o *dynamostore.Options) { o.MaxInline, o.CompressFrom = 1, 1<<30 },
		"encrypted":            func(o *dynamostore.Options) { o.Encryption = key("a") },
		"encrypted, in parts":  func(o *dynamostore.Options) { o.Encryption, o.MaxInline = key("a"), 1 },
		"compressed, in parts": func(o *dynamostore.Options) { o.MaxInline = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newUserBank(t)
			guard := func(set func(*dynamostore.Options)) *lambdaidem.Guard {
				return lambdaidem.New(dynamostore.New(b.client, b.records, set), func(o *lambdaidem.Options) {
					o.Namespace, o.Observer = "bank", lambdaidem.Discard
				})
			}
			runs := 0
			pay := func(g *lambdaidem.Guard, repeated bool) (string, error) {
				call := lambdaidem.Call{Operation: "pay", Key: "k", Principal: "alice", Repeated: repeated}
				return lambdaidem.Do(t.Context(), g, call, func(context.Context) (string, error) { runs++; return noise, nil })
			}
			g := guard(set)
			if got, err := pay(g, true); got != noise || err != nil {
				t.Fatalf("the first call got %d bytes, %v", len(got), err)
			}
			for _, repeated := range []bool{false, true} {
				if got, err := pay(g, repeated); got != noise || err != nil {
					t.Errorf("repeated %t: %d bytes, %v", repeated, len(got), err)
				}
			}
			if strings.HasPrefix(name, "encrypted") {
				other := guard(func(o *dynamostore.Options) { set(o); o.Encryption = key("b") })
				_, locked := pay(other, false)
				_, lookedUp := pay(other, true)
				if locked == nil || lookedUp == nil || codeOf(locked) != codeOf(lookedUp) {
					t.Errorf("with another key: locked first %v, looked up %v", locked, lookedUp)
				}
			}
			o, err := dynamostore.New(b.client, b.records, set).Operator("ann", "erasure")
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range o.Purge(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := pay(g, true); codeOf(err) != lambdaidem.ErrAnswerUnavailable {
				t.Errorf("after a purge: %v", err)
			}
			if runs != 1 {
				t.Errorf("the function ran %d times", runs)
			}
		})
	}
}

func codeOf(err error) lambdaidem.Code {
	if e, ok := errors.AsType[*lambdaidem.Error](err); ok {
		return e.Code
	}
	return ""
}

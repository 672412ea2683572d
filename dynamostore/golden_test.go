package dynamostore

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
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
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The files in testdata/items have items as versions of this package have written them. Every
// version must read them with the same meaning. A file is never edited: a new layout gets new
// files.
//
// Layout 1 knows no encoding, and refuses any item that has one. Layout 2 writes an answer without
// an encoding in the same way as layout 1. Layout 3, which is optional, adds an attribute that the
// others ignore. Layout 4 adds to each part the record's scope and the time at which it was
// written. Layout 5, of attempts in Lambda, adds the invocation and the last failure. Layout 6, of
// stores that encrypt, adds the cipher when the lease is taken.

var golden = struct {
	claim                      lambdaidem.Claim
	text, binary, long, failed lambdaidem.Result
}{
	claim: lambdaidem.Claim{
		ID: "lambdaidem#golden", Scope: "shop POST /payments", Fingerprint: "b1946ac92492d2347c6235b4d2611184", Token: "token-of-attempt-1",
		Now: goldenTime, LeaseEnd: goldenTime.Add(30 * time.Second), Expires: goldenTime.Add(time.Hour),
	},
	text:   goldenResult(`{"statusCode":201,"body":"paid"}`),
	binary: goldenResult("\xff\x00\xfe"),
	long:   goldenResult(strings.Repeat(`{"statusCode":201,"body":"paid"}`, 250)),
	failed: lambdaidem.Result{
		Outcome: lambdaidem.OutcomeFailed, At: goldenTime.Add(1500 * time.Millisecond), Expires: goldenTime.Add(24 * time.Hour),
		Failure: &lambdaidem.Failure{Code: "card_declined", Type: "CardError", Message: "the card was declined", Status: 402},
	},
}

var goldenTime = time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)

func goldenResult(value string) lambdaidem.Result {
	return lambdaidem.Result{
		Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(value), At: goldenTime.Add(1500 * time.Millisecond), Expires: goldenTime.Add(24 * time.Hour),
	}
}

// goldenFile describes the record in one file, and how this version writes it.
type goldenFile struct {
	result     *lambdaidem.Result // nil: the record is in progress
	release    bool
	failure    string // Lease.LastFailure of the release
	invocation string
	option     func(*Options)
	old        bool // this version writes another layout
}

func (f *goldenFile) claim() lambdaidem.Claim {
	c := golden.claim
	c.Invocation = f.invocation
	return c
}

// goldens returns a description of each file.
func goldens() map[string]goldenFile {
	const invocation = "6bc28136-xmpl-4365-b021-0ce6b2e64ab0"
	inParts := func(o *Options) { o.MaxInline = 1 }
	return map[string]goldenFile{
		"1-in-progress":      {},
		"1-released":         {release: true},
		"1-text":             {result: &golden.text},
		"1-binary":           {result: &golden.binary},
		"1-failure":          {result: &golden.failed},
		"2-gzip":             {result: &golden.long},
		"2-plain-in-parts":   {result: &golden.text, option: inParts, old: true},
		"2-gzip-in-parts":    {result: &golden.long, option: inParts, old: true},
		"2-failure-in-parts": {result: &golden.failed, option: inParts, old: true},
		"2-binary-in-parts":  {result: &golden.binary, option: inParts, old: true},
		"4-plain-in-parts":   {result: &golden.text, option: inParts},
		"4-gzip-in-parts":    {result: &golden.long, option: inParts},
		"4-failure-in-parts": {result: &golden.failed, option: inParts},
		"4-binary-in-parts":  {result: &golden.binary, option: inParts},
		"3-in-progress":      {option: func(o *Options) { o.LeaseIndex = "leases" }},
		"5-in-progress":      {invocation: invocation},
		"5-released":         {invocation: invocation, release: true, failure: "net.OpError"},
		"6-in-progress":      {option: func(o *Options) { o.Encryption = StaticKeys(keyOf("k1")) }},
		"5-text":             {invocation: invocation, result: &golden.text},
	}
}

// items is a fake table with the items of a golden file, by their keys.
type items map[string]json.RawMessage

func readGolden(t *testing.T, name string) items {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "items", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	byID := items{}
	for _, one := range all {
		var it struct{ ID struct{ S string } }
		if err := json.Unmarshal(one, &it); err != nil {
			t.Fatal(err)
		}
		byID[it.ID.S] = one
	}
	return byID
}

// Do responds to every GetItem.
func (i items) Do(r *http.Request) (*http.Response, error) {
	var in struct{ Key map[string]struct{ S string } }
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	one, ok := i[in.Key[attrID].S]
	if !ok {
		return answer(200, `{}`), nil
	}
	return answer(200, `{"Item":`+string(one)+`}`), nil
}

func (i items) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://127.0.0.1:1"), HTTPClient: i,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	}, switched)
}

// Every item that any version has written is read with its meaning.
func TestD4_ItemsOfEveryLayoutAreRead(t *testing.T) {
	for name, file := range goldens() {
		t.Run(name, func(t *testing.T) {
			s := New(readGolden(t, name).client(), "test")
			got, err := s.Get(t.Context(), golden.claim.ID, goldenTime)
			if err != nil {
				t.Fatal(err)
			}
			if got.Result, err = s.Load(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			want := claimed(file.claim()).record()
			switch {
			case file.release:
				want.State, want.Expires, want.LastFailure = lambdaidem.Released, goldenTime.Add(2*time.Hour), file.failure
			case file.result != nil:
				want.State, want.CompletedAt, want.Expires, want.Result = lambdaidem.Completed, file.result.At, file.result.Expires, *file.result
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("meant - read +:\n%s", diff)
			}
		})
	}
}

// Whatever an older version would misread has an encoding, which makes it refuse the item. So an
// answer is never replayed as an empty one.
func TestD4_WhatAnOlderVersionCantReadHasAnEncoding(t *testing.T) {
	for name := range goldens() {
		var it map[string]json.RawMessage
		if err := json.Unmarshal(readGolden(t, name)[golden.claim.ID], &it); err != nil {
			t.Fatal(err)
		}
		_, parts := it[attrParts]
		if _, encoding := it[attrEncoding]; encoding != (strings.HasPrefix(name, "2-") || strings.HasPrefix(name, "4-")) || parts != encoding {
			t.Errorf("%s has an encoding: %v, parts: %v", name, encoding, parts)
		}
	}
}

// This version writes the same items as when the file was made, because other versions read them.
// (The bytes that gzip produces may change with the version of Go.)
func TestD4_TheLayoutIsWhatItWas(t *testing.T) {
	for name, file := range goldens() {
		if file.old {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want := readGolden(t, name)
			if diff := cmp.Diff(withoutGzip(t, want), withoutGzip(t, writtenToday(t, &file))); diff != "" {
				t.Errorf("file - today +:\n%s", diff)
			}
		})
	}
}

func writtenToday(t *testing.T, file *goldenFile) items {
	t.Helper()
	s := New(written.client(), "test")
	if file.option != nil {
		s = New(written.client(), "test", file.option)
	}
	itm, all := s.locked(file.claim()), items{}
	lease := lambdaidem.Lease{ID: golden.claim.ID, Token: golden.claim.Token, Scope: golden.claim.Scope}
	switch {
	case file.release:
		itm.release(goldenTime.Add(2*time.Hour), file.failure, "")
	case file.result != nil:
		p, err := s.pack(t.Context(), lease, *file.result)
		if err != nil {
			t.Fatal(err)
		}
		itm.finish(p.result)
		if a, ok := p.result.Apart.(*apart); ok && p.partData != nil {
			part := s.layout.part(lease, a.Parts.Checksum, 1, p.partData, *file.result)
			all[part[attrID].(*types.AttributeValueMemberS).Value] = onTheWire(t, part)
		}
	}
	all[itm.ID] = onTheWire(t, s.layout.attributes(itm))
	return all
}

// onTheWire returns an item as JSON.
func onTheWire(t *testing.T, attrs attributes) json.RawMessage {
	t.Helper()
	var of func(types.AttributeValue) any
	of = func(v types.AttributeValue) any {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			return map[string]string{"S": v.Value}
		case *types.AttributeValueMemberN:
			return map[string]string{"N": v.Value}
		case *types.AttributeValueMemberB:
			return map[string]string{"B": base64.StdEncoding.EncodeToString(v.Value)}
		case *types.AttributeValueMemberBOOL:
			return map[string]bool{"BOOL": v.Value}
		case *types.AttributeValueMemberM:
			m := map[string]any{}
			for name, member := range v.Value {
				m[name] = of(member)
			}
			return map[string]any{"M": m}
		}
		t.Fatalf("no item has a %T", v)
		return nil
	}
	m := map[string]any{}
	for name, v := range attrs {
		m[name] = of(v)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// withoutGzip decodes the items, and removes data that begins like gzip.
func withoutGzip(t *testing.T, all items) map[string]any {
	t.Helper()
	out := map[string]any{}
	for id, one := range all {
		var it map[string]map[string]any
		if err := json.Unmarshal(one, &it); err != nil {
			t.Fatal(err)
		}
		if b, ok := it[attrData]["B"].(string); ok && strings.HasPrefix(b, "H4sI") {
			it[attrData] = nil
		}
		out[id] = maps.Clone(it)
	}
	return out
}

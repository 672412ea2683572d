package dynamostore

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/storetest"
)

// keyOf returns a key with the given id. The secret depends on the last character of the id.
func keyOf(id string) Key {
	return Key{ID: id, Secret: bytes.Repeat([]byte{id[len(id)-1]}, 32)}
}

// encrypted returns an option with the keys of the given ids. The first one encrypts.
func encrypted(ids ...string) func(*Options) {
	return func(o *Options) {
		var keys []Key
		for _, id := range ids {
			keys = append(keys, keyOf(id))
		}
		o.Encryption = StaticKeys(keys...)
	}
}

// A store that encrypts passes the conformance suite.
func TestS1_ConformanceOfAnEncryptingStore(t *testing.T) {
	for name, option := range map[string]func(*Options){
		"inline":   func(*Options) {},
		"in parts": func(o *Options) { o.MaxInline = 1 },
		"only":     func(o *Options) { o.Encryption.Only = true },
	} {
		t.Run(name, func(t *testing.T) {
			client, table := freshTable(t)
			s := New(client, table, patient, encrypted("k1"), option)
			t.Run("suite", func(t *testing.T) {
				storetest.Test(t, func(*testing.T) lambdaidem.Store { return s })
			})
		})
	}
}

// secret is part of every text that these tests store.
const secret = "4929-1234-5678-9012"

// kept is one way in which a record stores a text.
type kept struct {
	name   string
	option func(*Options)
	result lambdaidem.Result
}

func keptTexts() []kept {
	failure := &lambdaidem.Failure{Code: "card_declined", Type: "Declined", Message: "card " + secret + " was declined", Status: 402}
	failed := lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, Failure: failure, At: result.At, Expires: result.Expires}
	wrapping := failed
	wrapping.Failure = &lambdaidem.Failure{Code: lambdaidem.ErrAnswerUnavailable, Type: "wrapError", Message: "card " + secret + ": the answer is unavailable", Status: 500}
	long := *failure
	long.Message += strings.Repeat(" and declined", 1000)
	failedLong := failed
	failedLong.Failure = &long
	none := func(*Options) {}
	return []kept{
		{"a value", none, withValue([]byte(`{"card":"` + secret + `"}`))},
		{"an empty value", none, withValue([]byte{})},
		{"one that is compressed", none, withValue([]byte(strings.Repeat(`{"card":"`+secret+`"}`, 1000)))},
		{"one in parts", func(o *Options) { o.MaxInline = 1 }, withValue([]byte(secret + noise(2*partSize)))},
		{"one that is compressed, in parts", func(o *Options) { o.MaxInline = 1 }, withValue([]byte(strings.Repeat(secret+noise(100<<10), 10)))},
		{"a failure", none, failed},
		{"a long failure", none, failedLong},
		{"a failure because a guarded call has no answer", none, wrapping},
	}
}

// Another process gets every stored text back unchanged, and nobody can read it in the table.
func TestS1_NothingOfAnAnswerCanBeReadInTheTable(t *testing.T) {
	client, table := freshTable(t)
	for i, c := range keptTexts() {
		t.Run(c.name, func(t *testing.T) {
			claim := claim
			claim.ID = fmt.Sprint("idem#", i)
			completes(t, New(client, table, patient, encrypted("k1"), c.option), claim, c.result)

			other := New(client, table, patient, encrypted("k2", "k1"))
			rec, err := other.Get(t.Context(), claim.ID, now)
			if err != nil {
				t.Fatal(err)
			}
			got, err := other.Load(t.Context(), rec)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(c.result, got) { // fast, unlike cmp.Diff, which compares byte by byte
				t.Errorf("it came back otherwise, wanted - got +:\n%s", cmp.Diff(c.result, got))
			}
		})
	}
	wantUnreadable(t, client, table)
}

// wantUnreadable fails the test if an item of the table contains the secret.
func wantUnreadable(t *testing.T, client *dynamodb.Client, table string) {
	t.Helper()
	for _, attrs := range scanAll(t, client, table) {
		for name, v := range attrs {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			bin, _ := v.(*types.AttributeValueMemberB)
			if bytes.Contains(text, []byte("declined")) || bytes.Contains(text, []byte(secret)) || bin != nil && bytes.Contains(bin.Value, []byte(secret)) {
				t.Errorf("%v has the attribute %s in clear: %s", attrs[attrID], name, text)
			}
		}
	}
}

func scanAll(t *testing.T, client *dynamodb.Client, table string) (items []map[string]types.AttributeValue) {
	t.Helper()
	for p := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)}); p.HasMorePages(); {
		page, err := p.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	return items
}

// Completing a record drops its steps, so the reply must not decrypt the old ones.
func TestE5_ACompletedRecordHasNoSteps(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient, encrypted("k1"))
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveSteps(t.Context(), lease, lambdaidem.Steps{"charge": []byte("1")}, now); err != nil {
		t.Fatal(err)
	}
	if rec, err := s.Complete(t.Context(), lease, result); err != nil || rec.State != lambdaidem.Completed || len(rec.Steps) > 0 {
		t.Errorf("%+v, %v; want a completed record without steps", rec, err)
	}
}

// Steps are encrypted too. A takeover by another process gets their results, and so does Inspect.
func TestS1_StepsAreEncrypted(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient, encrypted("k1"))
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	steps := lambdaidem.Steps{"charge": []byte(`"` + secret + `"`), "empty": {}}
	rec, err := s.SaveSteps(t.Context(), lease, steps, now)
	if err != nil {
		t.Fatal(err)
	}
	wantSteps := func(what string, got lambdaidem.Steps) {
		t.Helper()
		if diff := cmp.Diff(steps, got); diff != "" {
			t.Errorf("%s: wanted - got +:\n%s", what, diff)
		}
	}
	wantSteps("saved", rec.Steps)
	wantUnreadable(t, client, table)
	if rec, err = s.SaveSteps(t.Context(), lease, steps, now); err != nil { // saved again, with another ciphertext
		t.Errorf("saved again: %v", err)
	}
	wantSteps("saved again", rec.Steps)

	other := New(client, table, patient, encrypted("k2", "k1"))
	next := claimBy("token-2")
	next.Over = &rec
	if rec, err = other.Acquire(t.Context(), next); err != nil || rec.Token != "token-2" {
		t.Fatalf("%+v, %v", rec, err)
	}
	wantSteps("taken over", rec.Steps)
	steps["mail"] = []byte(`"sent"`)
	if _, err = other.SaveSteps(t.Context(), lambdaidem.Lease{ID: claim.ID, Token: "token-2"}, steps, now); err != nil {
		t.Fatal(err)
	}
	inspected, err := other.Inspect(t.Context(), claim.ID)
	if err != nil || inspected.StepsUnread != nil {
		t.Fatalf("%v, %v", err, inspected.StepsUnread)
	}
	wantSteps("inspected", inspected.Record.Steps)
	if rec, err = other.Release(t.Context(), lambdaidem.Lease{ID: claim.ID, Token: "token-2", Expires: lease.Expires}, now); err != nil || len(rec.Steps) != 3 {
		t.Fatalf("%+v, %v", rec, err)
	}
	wantSteps("released", rec.Steps)
	if rec, err = New(client, table, patient, encrypted("k1")).Get(t.Context(), claim.ID, now); err != nil {
		t.Fatal(err)
	}
	for name, result := range rec.Steps {
		if result != nil {
			t.Errorf("step %s of a record that is another's is %q, in a process that has not asked for its key", name, result)
		}
	}

	blind := New(client, table, patient)
	if inspected, err = blind.Inspect(t.Context(), claim.ID); err != nil || inspected.StepsUnread == nil {
		t.Fatalf("without a key: %v, %v", err, inspected.StepsUnread)
	}
	if diff := cmp.Diff(lambdaidem.Steps{"charge": nil, "empty": nil, "mail": nil}, inspected.Record.Steps); diff != "" {
		t.Errorf("without a key, wanted - got +:\n%s", diff)
	}
}

// moved copies attributes from one item to another.
func moved(t *testing.T, client *dynamodb.Client, table, from, to string, names ...string) {
	t.Helper()
	a, b := itemOf(t, client, table, from), itemOf(t, client, table, to)
	for _, name := range names {
		if b[name] = a[name]; a[name] == nil {
			delete(b, name)
		}
	}
	putItem(t, client, table, b)
}

// A sealed text is refused as damaged in any other place: in another record, under another token,
// for another purpose, or with any bit changed.
func TestS1_ATextIsOfItsPlaceAlone(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient, encrypted("k1"))
	at := func(id string) lambdaidem.Claim {
		c := claim
		c.ID = id
		return c
	}
	wantDamaged := func(t *testing.T, id string) {
		t.Helper()
		rec, err := s.Get(t.Context(), id, now)
		if err == nil && rec.State == lambdaidem.InProgress {
			next := at(id)
			next.Token, next.Over = "token-2", &rec
			_, err = s.Acquire(t.Context(), next)
		} else if err == nil {
			_, err = s.Load(t.Context(), rec)
		}
		se := (*lambdaidem.StoreError)(nil)
		if !errors.As(err, &se) || se.Reason != lambdaidem.ReasonForeign {
			t.Errorf("it is read: %v", err)
		}
	}
	// resum corrects the checksum, as somebody who can write to the table could do.
	resum := func(t *testing.T, id string) {
		t.Helper()
		attrs := itemOf(t, client, table, id)
		data := attrs[attrData].(*types.AttributeValueMemberB).Value
		sum := checksum(id, attrs[attrToken].(*types.AttributeValueMemberS).Value, attrs[attrEncoding].(*types.AttributeValueMemberS).Value, data)
		attrs[attrParts].(*types.AttributeValueMemberM).Value[partsChecksum] = &types.AttributeValueMemberB{Value: sum}
		putItem(t, client, table, attrs)
	}
	change := func(t *testing.T, id string, do func(attributes)) {
		t.Helper()
		attrs := itemOf(t, client, table, id)
		do(attrs)
		putItem(t, client, table, attrs)
		resum(t, id)
	}
	mine, yours := withValue([]byte(`{"for":"alice"}`)), withValue([]byte(`{"for":"bobby"}`))
	t.Run("another record", func(t *testing.T) {
		completes(t, s, at("idem#a"), mine)
		completes(t, s, at("idem#b"), yours)
		moved(t, client, table, "idem#a", "idem#b", attrData, attrParts, attrEncoding)
		wantDamaged(t, "idem#b") // because of the checksum
		resum(t, "idem#b")
		wantDamaged(t, "idem#b")
	})
	t.Run("another attempt", func(t *testing.T) {
		completes(t, s, at("idem#c"), mine)
		change(t, "idem#c", func(attrs attributes) { attrs[attrToken] = str("token-9") })
		wantDamaged(t, "idem#c")
	})
	t.Run("a value as a failure", func(t *testing.T) {
		completes(t, s, at("idem#d"), withValue([]byte(`{"code":"paid","message":"m"}`)))
		change(t, "idem#d", func(attrs attributes) {
			attrs[attrParts].(*types.AttributeValueMemberM).Value[partsFailure] = &types.AttributeValueMemberBOOL{Value: true}
		})
		wantDamaged(t, "idem#d")
	})
	t.Run("a value as another encoding", func(t *testing.T) {
		completes(t, s, at("idem#e"), withValue(compressed([]byte("hello"))))
		change(t, "idem#e", func(attrs attributes) {
			attrs[attrEncoding] = str(encodingSealedGzip)
			attrs[attrParts].(*types.AttributeValueMemberM).Value[partsLength] = number(5)
		})
		wantDamaged(t, "idem#e")
	})
	t.Run("a step as a value", func(t *testing.T) {
		completes(t, s, at("idem#f"), mine)
		key, err := s.keys.forSealing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		change(t, "idem#f", func(attrs attributes) {
			attrs[attrData] = &types.AttributeValueMemberB{Value: key.seal("idem#f", claim.Token, purposeOfStep("x"), mine.Value)}
		})
		wantDamaged(t, "idem#f")
	})
	t.Run("every bit", func(t *testing.T) {
		completes(t, s, at("idem#g"), mine)
		whole := itemOf(t, client, table, "idem#g")
		text := bytes.Clone(whole[attrData].(*types.AttributeValueMemberB).Value)
		for i := range text {
			data := bytes.Clone(text)
			data[i] ^= 1 << (i % 8)
			rec := completedRecord("idem#g", claim.Token, data, len(mine.Value))
			if _, err := s.Load(t.Context(), rec); err == nil {
				t.Fatalf("byte %d of %d was changed, and it is read", i, len(text))
			}
		}
		for n := range text {
			if _, err := s.Load(t.Context(), completedRecord("idem#g", claim.Token, text[:n], len(mine.Value))); err == nil {
				t.Fatalf("it is read from %d of its %d bytes", n, len(text))
			}
		}
		if _, err := s.Load(t.Context(), completedRecord("idem#g", claim.Token, text, len(mine.Value))); err != nil {
			t.Errorf("unchanged: %v", err)
		}
	})
	t.Run("steps", func(t *testing.T) {
		begin := func(id string) {
			if _, err := s.Acquire(t.Context(), at(id)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.SaveSteps(t.Context(), lambdaidem.Lease{ID: id, Token: claim.Token}, lambdaidem.Steps{"a": []byte("1"), "b": []byte("2")}, now); err != nil {
				t.Fatal(err)
			}
		}
		begin("idem#h")
		begin("idem#i")
		moved(t, client, table, "idem#h", "idem#i", attrSteps)
		wantDamaged(t, "idem#i")
		attrs := itemOf(t, client, table, "idem#h")
		of := attrs[attrSteps].(*types.AttributeValueMemberM).Value
		of["a"], of["b"] = of["b"], of["a"]
		putItem(t, client, table, attrs)
		wantDamaged(t, "idem#h")
	})
}

// completedRecord returns a completed record as Get would return it.
func completedRecord(id, token string, data []byte, length int) lambdaidem.Record {
	a := &apart{Encoding: encodingSealed, Data: data, Parts: parts{Length: length}}
	a.Parts.Checksum = checksum(id, token, a.Encoding, data)
	return lambdaidem.Record{ID: id, Token: token, State: lambdaidem.Completed, Result: lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Apart: a}}
}

// Two equal answers have different ciphertexts, in every part of the stored bytes.
func TestS1_EqualAnswersDiffer(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient, encrypted("k1"))
	for _, id := range []string{"idem#a", "idem#b"} {
		c := claim
		c.ID = id
		completes(t, s, c, result)
	}
	a, b := itemOf(t, client, table, "idem#a"), itemOf(t, client, table, "idem#b")
	for _, name := range []string{attrData, attrParts} {
		if bytes.Equal(wireJSON(t, attributes{name: a[name]}), wireJSON(t, attributes{name: b[name]})) {
			t.Errorf("%s is the same: %v", name, a[name])
		}
	}
	k := keyOf("k1")
	seals := map[string]string{}
	for name, b := range map[string][]byte{
		"it": k.seal("id", "t", "p", []byte("text")), "another record's": k.seal("ie", "t", "p", []byte("text")),
		"another attempt's": k.seal("id", "u", "p", []byte("text")), "in another place": k.seal("id", "t", "q", []byte("text")),
		"another text": k.seal("id", "t", "p", []byte("tex!")), "under another key": keyOf("k2").seal("id", "t", "p", []byte("text")),
		"cut elsewhere": k.seal("id", "t", "pt", []byte("ext")),
	} {
		of, err := parseSealed(b)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seals[string(of.salt)]; twice {
			t.Errorf("%s and %s have one salt", name, other)
		}
		seals[string(of.salt)] = name
	}
}

// A completion that is retried writes the same parts again, and no others.
func TestS1_ACompletionTriedAgainIsTheSameBytes(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient, encrypted("k1"), func(o *Options) { o.MaxInline = 1 })
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Complete(t.Context(), lease, withValue([]byte(noise(partSize)))); err != nil {
			t.Fatal(err)
		}
	}
	if items := scanAll(t, client, table); len(items) != 1+2 {
		t.Errorf("%d items; want a record and two parts", len(items))
	}
}

// The sealed form must not change, because old records must stay readable. Another program made
// this text: Python's cryptography 48, with HKDF and AESGCM.
func TestS1_TheFormIsWhatItWas(t *testing.T) {
	text, err := hex.DecodeString(goldenSeal)
	if err != nil {
		t.Fatal(err)
	}
	of, err := parseSealed(text)
	if err != nil {
		t.Fatal(err)
	}
	if of.keyID != "key-2026" || of.token != "token-1" {
		t.Errorf("key %q, token %q", of.keyID, of.token)
	}
	k := Key{ID: "key-2026", Secret: []byte("0123456789abcdef0123456789abcdef")}
	got, err := of.open(k, "idem#1", "sealed value")
	if err != nil || string(got) != `{"statusCode":201,"body":"grüße"}` {
		t.Errorf("%q, %v", got, err)
	}
	text[0]++
	if _, err := parseSealed(text); err == nil {
		t.Error("the form of a version to come is read as this one's")
	}
}

const goldenSeal = "01086b65792d3230323607746f6b656e2d31000102030405060708090a0b0c0d0e0f101112131415161723cc3270f8eb" +
	"11aea581c23286e3ea1248cb448ae91f13a13d8448f35a75c95e2e84cf20d12e803edf4e7cbe11f1ea05a4fbc1"

// To rotate keys, the new key is added and then moved to the front. Texts under the old key can be
// read until that key is removed, and are then lost for good.
func TestS1_KeysRotate(t *testing.T) {
	client, table := freshTable(t)
	old, other := claim, claim
	other.ID = "idem#other"
	completes(t, New(client, table, patient, encrypted("k1")), old, result)
	completes(t, New(client, table, patient, encrypted("k2", "k1")), other, result)
	for name, c := range map[string]struct {
		keys     []string
		old, new bool
	}{
		"before": {[]string{"k1"}, true, false},
		"during": {[]string{"k1", "k2"}, true, true},
		"after":  {[]string{"k2", "k1"}, true, true},
		"later":  {[]string{"k2"}, false, true},
	} {
		s := New(client, table, patient, encrypted(c.keys...))
		for id, want := range map[string]bool{old.ID: c.old, other.ID: c.new} {
			rec, err := s.Get(t.Context(), id, now)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Load(t.Context(), rec)
			if want && err != nil {
				t.Errorf("%s: %s: %v", name, id, err)
			}
			if !want {
				wantStoreError(t, err, opLoad, lambdaidem.ReasonForeign, true)
				if !errors.Is(err, ErrKeyGone) {
					t.Errorf("%s: %s: %v; want ErrKeyGone", name, id, err)
				}
			}
		}
	}
}

// A store with encryption reads older records in plain text, unless Only is set. A store without
// encryption never takes a ciphertext for an answer.
func TestS1_BeginningWithEncryption(t *testing.T) {
	client, table := freshTable(t)
	inline, zipped, failed := claim, claim, claim
	zipped.ID, failed.ID = "idem#zipped", "idem#failed"
	bare := New(client, table, patient)
	completes(t, bare, inline, result)
	completes(t, bare, zipped, withValue([]byte(strings.Repeat(`{"a":"b"}`, 1000))))
	completes(t, bare, failed, lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, Failure: &lambdaidem.Failure{Code: "c", Message: "m"}, At: result.At, Expires: result.Expires})
	only := func(o *Options) { o.Encryption.Only = true }
	for _, id := range []string{inline.ID, zipped.ID, failed.ID} {
		rec, err := bare.Get(t.Context(), id, now)
		if err != nil {
			t.Fatal(err)
		}
		want, err := bare.Load(t.Context(), rec)
		if err != nil {
			t.Fatal(err)
		}
		s := New(client, table, patient, encrypted("k1"))
		rec, err = s.Get(t.Context(), id, now)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Load(t.Context(), rec); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", id, got, err, want)
		}
		s = New(client, table, patient, encrypted("k1"), only)
		if rec, err = s.Get(t.Context(), id, now); err != nil || rec.State != lambdaidem.Completed {
			t.Fatalf("%+v, %v", rec, err)
		}
		if rec.Result.Value != nil || rec.Result.Failure != nil {
			t.Errorf("%s: only encrypted answers, and the record has %+v", id, rec.Result)
		}
		_, err = s.Load(t.Context(), rec)
		wantStoreError(t, err, opLoad, lambdaidem.ReasonForeign, true)
	}

	begun := claim
	begun.ID = "idem#begun"
	if _, err := bare.Acquire(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	if _, err := bare.SaveSteps(t.Context(), lambdaidem.Lease{ID: begun.ID, Token: begun.Token}, lambdaidem.Steps{"a": []byte("1")}, now); err != nil {
		t.Fatal(err)
	}
	if rec, err := New(client, table, patient, encrypted("k1")).Get(t.Context(), begun.ID, now); err != nil || string(rec.Steps["a"]) != "1" {
		t.Errorf("%+v, %v", rec, err)
	}
	over, err := New(client, table, patient, encrypted("k1"), only).Get(t.Context(), begun.ID, now)
	if err != nil {
		t.Fatal(err)
	}
	next := begun
	next.Token, next.Over = "token-2", &over
	_, err = New(client, table, patient, encrypted("k1"), only).Acquire(t.Context(), next)
	wantStoreError(t, err, opAcquire, lambdaidem.ReasonForeign, false)
	if !errors.Is(err, errNotSealed) {
		t.Errorf("%v; want that the steps are not encrypted", err)
	}

	// In the other direction: a store without encryption has no key for the record.
	c := claim
	c.ID = "idem#sealed"
	completes(t, New(client, table, patient, encrypted("k1")), c, result)
	rec, err := bare.Get(t.Context(), c.ID, now)
	if err != nil || rec.Result.Value != nil {
		t.Fatalf("%+v, %v", rec, err)
	}
	_, err = bare.Load(t.Context(), rec)
	wantStoreError(t, err, opLoad, lambdaidem.ReasonForeign, true)
}

// Versions without encryption refuse encrypted items, because they don't know the encodings.
func TestS1_VersionsBeforeEncryptionRefuseItsItems(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient, encrypted("k1"))
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveSteps(t.Context(), lease, lambdaidem.Steps{"a": []byte("1")}, now); err != nil {
		t.Fatal(err)
	}
	encodings := []attributes{itemOf(t, client, table, claim.ID)}
	for i, c := range keptTexts() {
		claim := claim
		claim.ID = fmt.Sprint("idem#", i)
		completes(t, New(client, table, patient, encrypted("k1"), c.option), claim, c.result)
		encodings = append(encodings, itemOf(t, client, table, claim.ID))
	}
	for _, attrs := range encodings {
		switch encoding := attrs[attrEncoding].(*types.AttributeValueMemberS).Value; encoding {
		case "plain", "gzip", "steps", "":
			t.Errorf("%v has the encoding %q, which older versions know", attrs[attrID], encoding)
		}
	}
}

// An operator's answer is encrypted too. A purge can erase an answer without having its key.
func TestS1_OperatorsOverEncryptedRecords(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient, encrypted("k1"))
	dead := claim
	dead.Scope = "shop POST /payments jwt:alice"
	dead.LeaseEnd = now.Add(-3600 * 1e9)
	if _, err := s.Acquire(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	operator := func(s *Store) *Operator {
		o, err := s.Operator("ann", "TICKET-1")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	inspected, err := s.Inspect(t.Context(), dead.ID)
	if err != nil {
		t.Fatal(err)
	}
	answer := lambdaidem.EncodeAnswer(&lambdaidem.Response{Status: 201, Body: secret})
	if inspected, err = operator(s).Settle(t.Context(), inspected, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: answer}); err != nil {
		t.Fatal(err)
	}
	wantUnreadable(t, client, table)
	if got, err := s.Load(t.Context(), inspected.Record); err != nil || !bytes.Equal(got.Value, answer) {
		t.Errorf("%q, %v", got.Value, err)
	}
	for progress, err := range operator(New(client, table, patient)).Purge(t.Context()) {
		if err != nil || progress.After == "" && progress.Purged != 1 {
			t.Errorf("%+v, %v", progress, err)
		}
	}
	for _, option := range []func(*Options){func(*Options) {}, func(o *Options) { o.Encryption.Only = true }} {
		s := New(client, table, patient, encrypted("k1"), option)
		rec, err := s.Get(t.Context(), dead.ID, now)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Load(t.Context(), rec); err != nil || got.Failure == nil || got.Failure.Code != lambdaidem.ErrAnswerUnavailable || got.Failure.Status != 500 {
			t.Errorf("after the purge: %+v, %v", got, err)
		}
	}
	// With Only, the text of an erased record is a fixed one, and not what somebody has written to
	// the table.
	attrs := itemOf(t, client, table, dead.ID)
	attrs[attrFailure].(*types.AttributeValueMemberM).Value["message"] = str("pay to IBAN XX")
	attrs[attrFailure].(*types.AttributeValueMemberM).Value["status"] = number(201)
	putItem(t, client, table, attrs)
	only := New(client, table, patient, encrypted("k1"), func(o *Options) { o.Encryption.Only = true })
	rec, err := only.Get(t.Context(), dead.ID, now)
	if err != nil || rec.Result.Failure == nil || strings.Contains(rec.Result.Failure.Message, "IBAN") || rec.Result.Failure.Status != 500 {
		t.Errorf("a forged one: %+v, %v", rec.Result.Failure, err)
	}
}

// Nothing that prints a key prints its secret.
func TestS1_KeysArePrintedWithoutTheirSecrets(t *testing.T) {
	k := Key{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")}
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	all := string(text)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		all += " " + fmt.Sprintf(verb, k) + " " + fmt.Sprintf(verb, &k) + " " + fmt.Sprintf(verb, []Key{k})
	}
	for _, leak := range []string{"0123456789", "48 49 50", "30313233", "0x30, 0x31", "MDEyMzQ1"} {
		if strings.Contains(all, leak) {
			t.Errorf("%q stands in %s", leak, all)
		}
	}
}

// Invalid keys and options are reported at once.
func TestS1_InvalidKeysAndOptions(t *testing.T) {
	of := StaticKeys(keyOf("k1"))
	for want, do := range map[string]func(){
		"there is no key":                     func() { StaticKeys() },
		"has 0 bytes; it must have 1 to 1024": func() { StaticKeys(Key{Secret: make([]byte, 32)}) },
		"has 1025 bytes; it must":             func() { StaticKeys(Key{ID: strings.Repeat("i", 1025), Secret: make([]byte, 32)}) },
		"is not UTF-8":                        func() { StaticKeys(Key{ID: "\xff", Secret: make([]byte, 32)}) },
		"key 2: its secret has 16 bytes":      func() { StaticKeys(keyOf("k1"), Key{ID: "k2", Secret: make([]byte, 16)}) },
		`two keys have the id "k1"`:           func() { StaticKeys(keyOf("k1"), keyOf("k1")) },
		"Options.Encryption.Current and Find": func() {
			resolved("New", "test", []func(*Options){func(o *Options) { o.Encryption.Current = of.Current }})
		},
		"Options.Encryption.Current and Find: one": func() { resolved("New", "test", []func(*Options){func(o *Options) { o.Encryption.Find = of.Find }}) },
		"Options.Encryption.Only is true":          func() { resolved("New", "test", []func(*Options){func(o *Options) { o.Encryption.Only = true }}) },
		"Options.Encryption.KeyFor is 1ms; it must be a": func() {
			resolved("New", "test", []func(*Options){encrypted("k1"), func(o *Options) { o.Encryption.KeyFor = 1e6 }})
		},
	} {
		func() {
			defer func() {
				if v := fmt.Sprint(recover()); !strings.Contains(v, want) {
					t.Errorf("panics with %q; want %q", v, want)
				}
			}()
			do()
		}()
	}
	kept := keyOf("k1")
	of = StaticKeys(kept)
	clear(kept.Secret)
	if k, err := of.Find(t.Context(), "k1"); err != nil || !bytes.Equal(k.Secret, keyOf("k1").Secret) {
		t.Errorf("the caller changed its slice, and the key is %x, %v", k.Secret, err)
	}
}

// parseSealed accepts only sealed texts, and never panics.
func FuzzParseSealed(f *testing.F) {
	k := keyOf("k1")
	f.Add(k.seal("id", "token", "place", []byte("text")))
	f.Add([]byte{sealVersion, 1, 'k', 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		of, err := parseSealed(data)
		if err != nil {
			return
		}
		if got := append(bytes.Clone(of.header), of.text...); !bytes.Equal(got, data) {
			t.Errorf("%x is read as %x", data, got)
		}
		if _, err := of.open(k, "other", "place"); err == nil {
			t.Error("it is opened in another record")
		}
	})
}

// Without Options.Encryption, items are the same as before encryption existed.
func TestS1_WithoutEncryptionItemsAreWhatTheyWere(t *testing.T) {
	s := New(dynamodb.New(dynamodb.Options{Region: "eu-west-1"}), "test")
	p, err := s.pack(t.Context(), lease, result)
	if err != nil || p.result.Apart != nil || !bytes.Equal(p.result.Value, result.Value) {
		t.Errorf("%+v, %v", p, err)
	}
	itm := &item{ID: "i", Token: "t"}
	if err := s.setSteps(t.Context(), itm, lambdaidem.Steps{"a": []byte("1")}); err != nil || itm.Encoding.s != encodedSteps || !maps.EqualFunc(itm.Steps, lambdaidem.Steps{"a": []byte("1")}, bytes.Equal) {
		t.Errorf("%+v, %v", itm, err)
	}
}

// keysOutOfReach returns an option for an encryption that can decrypt, but whose current key is
// unavailable while down is true.
func keysOutOfReach(down *atomic.Bool) func(*Options) {
	return func(o *Options) {
		encrypted("k1")(o)
		current := o.Encryption.Current
		o.Encryption.Current = func(ctx context.Context) (Key, error) {
			if down.Load() {
				return Key{}, errors.New("the key service is down")
			}
			return current(ctx)
		}
	}
}

// The record is damaged, so the handler may have run (docs/errors.md). Options.FailOpen does not
// run a handler over a damaged record, even if the key service is down too.
func TestX5_FailOpenDoesNotRunOverADamagedRecordWithoutAKey(t *testing.T) {
	client, table := freshTable(t)
	var down atomic.Bool
	call := lambdaidem.Call{Operation: "pay", Key: "k"}
	runs := 0
	pay := func() error {
		g := lambdaidem.New(New(client, table, patient, keysOutOfReach(&down)), func(o *lambdaidem.Options) {
			o.Namespace, o.Observer, o.FailOpen = "n", lambdaidem.Discard, true
		})
		_, err := lambdaidem.Do(t.Context(), g, call, func(context.Context) (int, error) { runs++; return runs, nil })
		return err
	}
	if err := pay(); err != nil {
		t.Fatal(err)
	}
	for _, attrs := range scanAll(t, client, table) {
		attrs[attrStatus] = str("damaged")
		putItem(t, client, table, attrs)
	}
	if err := pay(); !errors.Is(err, lambdaidem.ErrRecordForeign) || runs != 1 {
		t.Fatalf("with a key: %v; the handler ran %d times", err, runs)
	}
	down.Store(true)
	if err := pay(); runs != 1 {
		t.Errorf("without a key: %v; the handler ran %d times", err, runs)
	}
}

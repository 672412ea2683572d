package dynamostore

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

var avOptions = cmpopts.IgnoreUnexported(
	types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{},
	types.AttributeValueMemberM{}, types.AttributeValueMemberL{}, types.AttributeValueMemberBOOL{},
	types.AttributeValueMemberNULL{}, types.AttributeValueMemberSS{},
)

var standardLayout = (&Options{
	IDAttribute: attrID, StatusAttribute: attrStatus, ExpirationAttribute: attrExpiration,
	InProgressExpirationAttribute: attrLeaseEnd, DataAttribute: attrData, ValidationAttribute: attrValidation,
}).layout()

// Every record can be written as an item and read back unchanged.
func TestR1_ARecordSurvivesItsItem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := lambdaidem.Claim{
			ID:          rapid.StringN(1, 40, 80).Draw(t, "id"),
			Scope:       rapid.String().Draw(t, "scope"),
			Fingerprint: rapid.String().Draw(t, "fingerprint"),
			Token:       rapid.StringN(1, 40, 80).Draw(t, "token"),
			Now:         moment(t, "now"),
			LeaseEnd:    moment(t, "lease end"),
			Expires:     moment(t, "expires").Truncate(time.Second),
			Invocation:  rapid.String().Draw(t, "invocation"),
		}
		itm := claimed(c)
		if rapid.Bool().Draw(t, "completed") {
			r := lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, At: moment(t, "at"), Expires: moment(t, "until")}
			if rapid.Bool().Draw(t, "failed") {
				r.Outcome = lambdaidem.OutcomeFailed
				r.Failure = &lambdaidem.Failure{
					Code: lambdaidem.Code(rapid.String().Draw(t, "code")), Type: rapid.String().Draw(t, "type"),
					Message: rapid.String().Draw(t, "message"), Status: rapid.Int().Draw(t, "status"),
				}
			} else {
				r.Value = rapid.SliceOf(rapid.Byte()).Draw(t, "value")
			}
			itm.finish(r)
		} else {
			steps := rapid.MapOfN(rapid.StringN(1, 20, 40), rapid.SliceOf(rapid.Byte()), 0, 3).Draw(t, "steps")
			itm.setSteps(encodedSteps, steps)
			if rapid.Bool().Draw(t, "released") {
				itm.release(moment(t, "released until"), rapid.String().Draw(t, "last failure"), rapid.String().Draw(t, "bound"))
			}
		}
		attrs := standardLayout.attributes(itm)
		back, err := standardLayout.parse(attrs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(itm.record(), back.record()); diff != "" {
			t.Error(diff)
		}
	})
}

func moment(t *rapid.T, label string) time.Time {
	return time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, label)).UTC()
}

// All times of a record are in UTC, whatever the local time zone is.
func TestR1_TimesAreUTC(t *testing.T) {
	itm := claimed(claim)
	itm.finish(result)
	r := itm.record()
	for name, at := range map[string]time.Time{
		"LeaseEnd": r.LeaseEnd, "Expires": r.Expires, "StartedAt": r.StartedAt, "CompletedAt": r.CompletedAt, "Result.At": r.Result.At,
	} {
		if at.Location() != time.UTC {
			t.Errorf("%s is in %v", name, at.Location())
		}
	}
}

// A field that is not set has no attribute.
func TestWhatIsNotSetIsNoAttribute(t *testing.T) {
	itm := claimed(lambdaidem.Claim{ID: "id", Token: "t"})
	itm.finish(lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded})
	want := attributes{
		attrID: str("id"), attrToken: str("t"), attrStatus: str("COMPLETED"), attrAttempt: number(1), attrOutcome: str("succeeded"),
		attrData: str(""), // an empty answer is an answer
	}
	if diff := cmp.Diff(want, standardLayout.attributes(itm), avOptions); diff != "" {
		t.Error(diff)
	}
}

// A UTF-8 answer is a string, which the console shows. Any other answer is binary.
func TestR1_DataIsAStringWhileItIsText(t *testing.T) {
	for _, c := range []struct {
		value []byte
		kept  types.AttributeValue
	}{
		{[]byte("grüße"), str("grüße")},
		{[]byte{0xff, 0x00}, &types.AttributeValueMemberB{Value: []byte{0xff, 0x00}}},
		{[]byte{}, str("")},
		{nil, str("")},
	} {
		itm := claimed(claim)
		itm.finish(withValue(c.value))
		if diff := cmp.Diff(c.kept, standardLayout.attributes(itm)[attrData], avOptions); diff != "" {
			t.Errorf("%q: %s", c.value, diff)
		}
	}
}

// The members of a failure have the documented names.
func TestAFailureIsAMap(t *testing.T) {
	itm := claimed(claim)
	itm.finish(lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, Failure: &lambdaidem.Failure{Code: "c", Type: "T", Message: "m", Status: 402}})
	want := &types.AttributeValueMemberM{Value: attributes{"code": str("c"), "type": str("T"), "message": str("m"), "status": number(402)}}
	if diff := cmp.Diff(want, standardLayout.attributes(itm)[attrFailure], avOptions); diff != "" {
		t.Error(diff)
	}
}

// No item makes parse panic, and every item that parse accepts can be written again.
func FuzzParse(f *testing.F) {
	f.Add("S", "COMPLETED", "t", "1", "2", "succeeded", []byte("x"), "encoding", "gzip")
	f.Add("N", "INPROGRESS", "1", "1e400", "-0", "", []byte{0xff}, "Token", "other")
	f.Add("M", "RELEASED", "t", "9223372036854775808", "", "failed", []byte(nil), "failure", "")
	f.Fuzz(func(t *testing.T, kind, status, token, attempt, end, outcome string, data []byte, extra, value string) {
		attrs := attributes{
			attrID: str("id"), attrStatus: str(status), attrToken: str(token), attrOutcome: str(outcome),
			attrAttempt:  &types.AttributeValueMemberN{Value: attempt},
			attrLeaseEnd: &types.AttributeValueMemberN{Value: end},
			attrData:     &types.AttributeValueMemberB{Value: data},
		}
		attrs[extra] = anyValue(kind, value, data)
		itm, err := standardLayout.parse(attrs)
		if err != nil {
			if !isForeign(err) {
				t.Errorf("error %v is no foreignItemError", err)
			}
			return
		}
		again := standardLayout.attributes(itm)
		back, err := standardLayout.parse(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(itm.record(), back.record()); diff != "" {
			t.Error(diff)
		}
	})
}

// anyValue returns an attribute value of the given type.
func anyValue(kind, text string, data []byte) types.AttributeValue {
	switch kind {
	case "N":
		return &types.AttributeValueMemberN{Value: text}
	case "B":
		return &types.AttributeValueMemberB{Value: data}
	case "M":
		return &types.AttributeValueMemberM{Value: attributes{"code": str(text), "status": &types.AttributeValueMemberN{Value: text}}}
	case "L":
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{str(text)}}
	case "NULL":
		return &types.AttributeValueMemberNULL{Value: true}
	case "BOOL":
		return &types.AttributeValueMemberBOOL{Value: len(data) > 0}
	case "SS":
		return &types.AttributeValueMemberSS{Value: []string{text}}
	case "nil":
		return nil
	default:
		return str(text)
	}
}

// A damaged item is refused with an error that says why.
func TestD4_ADamagedItemIsRefusedInWords(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(attributes)
	}{
		{"no id", func(a attributes) { delete(a, attrID) }},
		{"no status", func(a attributes) { delete(a, attrStatus) }},
		{"no outcome", func(a attributes) { delete(a, attrOutcome) }},
		{"no token", func(a attributes) { delete(a, attrToken) }},
		{"no lease end", func(a attributes) { delete(a, attrLeaseEnd) }},
		{"attempt zero", func(a attributes) { a[attrAttempt] = number(0) }},
		{"attempt as text", func(a attributes) { a[attrAttempt] = str("one") }},
		{"unknown status", func(a attributes) { a[attrStatus] = str("EXPIRED") }},
		{"unknown outcome", func(a attributes) { a[attrOutcome] = str("perhaps") }},
		{"unknown encoding", func(a attributes) { a[attrEncoding] = str("zstd") }},
		{"no expiration", func(a attributes) { delete(a, attrExpiration) }},
		{"released without an expiration", func(a attributes) {
			a[attrStatus] = str("RELEASED")
			delete(a, attrExpiration)
		}},
		{"no data, failure or parts", func(a attributes) { delete(a, attrData) }},
		{"data as a list", func(a attributes) { a[attrData] = &types.AttributeValueMemberL{} }},
		{"failure as text", func(a attributes) { delete(a, attrData); a[attrFailure] = str("m") }},
		{"failure with a status as text", func(a attributes) {
			delete(a, attrData)
			a[attrFailure] = &types.AttributeValueMemberM{Value: attributes{"status": str("402")}}
		}},
		{"data and failure", func(a attributes) {
			a[attrFailure] = &types.AttributeValueMemberM{Value: attributes{"message": str("m")}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			itm := claimed(claim)
			itm.finish(result)
			attrs := standardLayout.attributes(itm)
			if _, err := standardLayout.parse(attrs); err != nil {
				t.Fatalf("the item is refused before it is damaged: %v", err)
			}
			c.damage(attrs)
			if _, err := standardLayout.parse(attrs); !isForeign(err) {
				t.Errorf("error is %v; want a foreignItemError", err)
			}
		})
	}
}

// An answer is in the record or in parts. If an item claims both, neither is replayed.
func TestD4_AnItemWithItsAnswerInTwoPlacesIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		count   int
		data    []byte
		foreign bool
	}{
		"in the record":               {0, []byte("answer"), false},
		"in parts":                    {2, nil, false},
		"in the record, and in parts": {2, []byte("answer"), true},
		"nowhere":                     {0, nil, true},
	} {
		itm := claimed(claim)
		itm.finish(result)
		itm.Data, itm.Encoding = c.data, optionalText{encodingPlain, true}
		itm.Parts = &parts{Count: c.count, Length: 6, Checksum: make([]byte, 32)}
		if _, err := standardLayout.parse(standardLayout.attributes(itm)); isForeign(err) != c.foreign {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Valid records may lack an expiration, or an answer of at least one byte.
func TestD4_AValidItemMayLackAnExpirationOrAnAnswer(t *testing.T) {
	for name, r := range map[string]lambdaidem.Result{
		"closed by a purge while it was held": {Outcome: lambdaidem.OutcomeFailed, Failure: lambdaidem.NoAnswer("erased"), At: now},
		"an answer of no bytes":               withValue([]byte{}),
		"no answer":                           withValue(nil),
		"a failure":                           {Outcome: lambdaidem.OutcomeFailed, Failure: &lambdaidem.Failure{Code: "c"}, At: now, Expires: now},
	} {
		itm := claimed(claim)
		itm.finish(r)
		if _, err := standardLayout.parse(standardLayout.attributes(itm)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	held := claim
	held.Expires = time.Time{}
	if _, err := standardLayout.parse(standardLayout.attributes(claimed(held))); err != nil {
		t.Errorf("held: %v", err)
	}
}

// An attribute whose name differs from ours only in case is ignored.
func TestD4_AttributeNamesAreExact(t *testing.T) {
	attrs := standardLayout.attributes(claimed(claim))
	attrs["Token"], attrs["STATUS"] = str("stranger"), str("COMPLETED")
	itm, err := standardLayout.parse(attrs)
	if err != nil || itm.Token != claim.Token || itm.Status != lambdaidem.InProgress {
		t.Errorf("parsed %+v, %v", itm, err)
	}
}

func TestItemSizeFollowsAWSsRule(t *testing.T) {
	for _, c := range []struct {
		attrs attributes
		bytes int
	}{
		{attributes{"name": str("välue")}, 4 + 6},
		{attributes{"b": &types.AttributeValueMemberB{Value: make([]byte, 10)}}, 1 + 10},
		{attributes{"n": number(1234567)}, 1 + 4 + 1},
		{attributes{"n": number(-1000)}, 1 + 1 + 1 + 1},
		{attributes{"n": number(0)}, 1 + 0 + 1},
		{attributes{"m": &types.AttributeValueMemberM{Value: attributes{"k": str("v")}}}, 1 + 3 + 1 + 2},
	} {
		if got := sizeOf(c.attrs); got != c.bytes {
			t.Errorf("size of %v is %d; want %d", c.attrs, got, c.bytes)
		}
	}
}

// Compare BenchmarkItem with BenchmarkAcquire, which makes one call to DynamoDB Local.
func BenchmarkItem(b *testing.B) {
	itm := claimed(claim)
	itm.finish(withValue(make([]byte, 1024)))
	attrs := standardLayout.attributes(itm)
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			standardLayout.attributes(itm)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := standardLayout.parse(attrs); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAcquire(b *testing.B) {
	client, table := freshTable(b)
	s := New(client, table, patient)
	for b.Loop() {
		if _, err := s.Acquire(b.Context(), claim); err != nil {
			b.Fatal(err)
		}
	}
}

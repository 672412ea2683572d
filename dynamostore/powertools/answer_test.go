package powertools_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/powertools"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

type receipt struct {
	ID     string   `json:"id"`
	Cents  int      `json:"cents,omitempty"`
	Price  float64  `json:"price"`
	Tags   []string `json:"tags,omitempty"`
	Paid   bool     `json:"paid"`
	Note   *string  `json:"note"`
	Extras any      `json:"extras,omitempty"`
}

// find returns the result of Find for an answer that a function has stored.
func find[Out any](t *testing.T, language powertools.Language, data types.AttributeValue) (Out, error) {
	t.Helper()
	m := migrate(lambdaidem.Rerun)
	m.table.item = m.stored("", item{"data": data})
	got, found, err := powertools.Find[Out](t.Context(), m.records(language), powertools.Selection{ID: "id"})
	if found != (err == nil) {
		t.Errorf("found is %t, and the error %v", found, err)
	}
	return got, err
}

func TestR1_AnswersInEveryLanguage(t *testing.T) {
	want := receipt{ID: "pay_1", Cents: 1050, Price: 10.5, Tags: []string{"a"}, Paid: true, Extras: map[string]any{"x": nil, "y": "é"}}
	text := str(`{"cents": 1050, "extras": {"x": null, "y": "\u00e9"}, "id": "pay_1", "note": null, "paid": true, "price": 10.50, "tags": ["a"]}`)
	native := &types.AttributeValueMemberM{Value: item{
		"cents": number(1050), "id": str("pay_1"), "note": &types.AttributeValueMemberNULL{Value: true}, "paid": &types.AttributeValueMemberBOOL{Value: true},
		"price": &types.AttributeValueMemberN{Value: "10.5"}, "tags": &types.AttributeValueMemberL{Value: []types.AttributeValue{str("a")}},
		"extras": &types.AttributeValueMemberM{Value: item{"x": &types.AttributeValueMemberNULL{Value: true}, "y": str("é")}},
	}}
	for _, language := range []powertools.Language{powertools.Python, powertools.TypeScript, powertools.Java, powertools.DotNet} {
		data := text
		if language == powertools.TypeScript {
			data = native
		}
		if got, err := find[receipt](t, language, data); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", language, got, err)
		}
	}
	for _, c := range []struct {
		language powertools.Language
		data     types.AttributeValue
		want     string
	}{
		{powertools.Python, str(`"hello"`), "hello"},
		{powertools.DotNet, str(`"hello"`), "hello"},
		{powertools.TypeScript, str(`hello`), "hello"},
		{powertools.TypeScript, str(`"hello"`), `"hello"`},
		{powertools.Java, str(`hello`), "hello"},
		{powertools.Java, str(`"hello"`), `"hello"`},
	} {
		if got, err := find[string](t, c.language, c.data); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.language, got, err)
		}
	}
	for _, null := range []types.AttributeValue{nil, &types.AttributeValueMemberNULL{Value: true}} {
		if got, err := find[*receipt](t, powertools.TypeScript, null); err != nil || got != nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// Find returns no error for an answer that an Out can hold.
func TestR1_AnAnswerThatFits(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"id": "", "cents": 0, "price": 0.0, "tags": [], "paid": false, "note": null, "extras": {}}`,
		`{"id": null, "tags": null, "price": 1e2}`, `{"price": 10.0}`, `{"extras": [1.50, {"a": []}]}`, `{"note": "x"}`, `{"extras": 9007199254740992}`,
		`{"price": 100000000000000000000000}`, `{"price": -0.0}`,
	} {
		if _, err := find[receipt](t, powertools.Python, str(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got, err := find[json.RawMessage](t, powertools.Python, str(`{"n": 9007199254740993}`)); err != nil || string(got) != `{"n": 9007199254740993}` {
		t.Errorf("%s, %v", got, err)
	}
}

// An answer that an Out can't hold is refused, never shortened.
func TestR1_AnAnswerThatDoesNotFit(t *testing.T) {
	for text, why := range map[string]string{
		`{"id": "pay_1", "state": "paid"}`:    "answer.state",
		`{"ID": "pay_1"}`:                     "answer.ID",
		`{"id": 1}`:                           "can't be decoded",
		`{"cents": 1.5}`:                      "can't be decoded",
		`[{"id": "pay_1"}]`:                   "can't be decoded",
		`{"extras": {"n": 9007199254740993}}`: "answer.extras.n",
		`{"extras": [[0.1], [1e400]]}`:        "can't be decoded",
		`{"price": 100000000000000000000001}`: "answer.price",
		`{"price": 12345678901234567.89}`:     "answer.price", // a BigDecimal of Java
		`{"price": 0.12345678901234567890}`:   "answer.price",
		`{"price": 1e-400}`:                   "answer.price",
		`{"id": "pay_\ud83d"}`:                "unpaired surrogate",
		`null`:                                "its answer is null",
		`{"id": "pay_1"} {}`:                  "not JSON",
		`hello`:                               "not JSON",
		``:                                    "not JSON",
		`{"id": "a", "paid": []}`:             "can't be decoded",
	} {
		got, err := find[receipt](t, powertools.Python, str(text))
		if err == nil || !strings.Contains(err.Error(), why) || !reflect.DeepEqual(got, receipt{}) {
			t.Errorf("%s: %+v, %v; want an error with %q", text, got, err, why)
		}
	}
	if got, err := find[[1]int](t, powertools.Python, str(`[1, 2]`)); err == nil {
		t.Errorf("%v", got)
	}
	if got, err := find[[3]int](t, powertools.Python, str(`[1, 2]`)); err == nil {
		t.Errorf("%v", got)
	}
	for _, data := range []types.AttributeValue{
		&types.AttributeValueMemberB{Value: []byte("x")},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberSS{Value: []string{"a"}}}},
		&types.AttributeValueMemberM{Value: item{"a": &types.AttributeValueMemberNS{Value: []string{"1"}}}},
	} {
		if _, err := find[any](t, powertools.TypeScript, data); err == nil || !strings.Contains(err.Error(), "JSON does not have") {
			t.Errorf("%T: %v", data, err)
		}
	}
}

// money has JSON methods on its pointer only. Lambda sends a money value as an object, because
// encoding/json does not call MarshalJSON for it. Find must compare the stored answer with that
// JSON.
type money struct{ Cents int }

func (m *money) MarshalJSON() ([]byte, error) { return json.Marshal(m.text()) }

func (m *money) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(string(b), `"%d"`, &m.Cents)
	return err
}

func (m *money) text() string { return strconv.Itoa(m.Cents) }

func TestR1_AnAnswerIsComparedAsLambdaSendsIt(t *testing.T) {
	type bill struct {
		Total money `json:"total"`
	}
	type pointers struct {
		Total *money `json:"total"`
	}
	if got, err := find[bill](t, powertools.Python, str(`{"total": "1050"}`)); err == nil {
		t.Errorf("%+v, which is an object in JSON", got)
	}
	if got, err := find[pointers](t, powertools.Python, str(`{"total": "1050"}`)); err != nil || got.Total.Cents != 1050 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Python writes both members of {1: …, "1": …} under the name "1". encoding/json would merge their
// values into an object that no function has returned.
func TestR1_AnAnswerWithDuplicateMembers(t *testing.T) {
	const text = `{"1": {"debit": 5}, "1": {"credit": 7}}`
	type entry struct {
		Debit  int `json:"debit,omitempty"`
		Credit int `json:"credit,omitempty"`
	}
	type book struct {
		One entry `json:"1"`
	}
	if got, err := find[book](t, powertools.Python, str(text)); err == nil || !strings.Contains(err.Error(), "two members") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := find[json.RawMessage](t, powertools.Python, str(text)); err != nil || string(got) != text {
		t.Errorf("%s, %v", got, err)
	}
}

// An unpaired surrogate, which Python writes as an escape, stays as it is in a json.RawMessage.
func TestR1_AnUnpairedSurrogateInJSONText(t *testing.T) {
	const text = `{"id": "pay_\ud83d"}`
	if got, err := find[json.RawMessage](t, powertools.Python, str(text)); err != nil || string(got) != text {
		t.Errorf("%s, %v", got, err)
	}
}

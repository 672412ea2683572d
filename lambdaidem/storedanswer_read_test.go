package lambdaidem_test

import (
	"reflect"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// wantSameAnswer checks that the quick reader reads the same as encoding/json. It reports whether
// the quick reader could read the text.
func wantSameAnswer(t *testing.T, text string) (quickly bool) {
	t.Helper()
	quick, ok, whole, err := lambdaidem.ReadAnswer([]byte(text))
	if ok && (err != nil || !reflect.DeepEqual(quick, whole)) {
		t.Errorf("%q is read as %+v, and by encoding/json as %+v, %v", text, quick, whole, err)
	}
	return ok
}

// The quick reader reads the same as encoding/json, and it can read usual answers.
func TestR1_AnswersAreReadAsEncodingJSONDoes(t *testing.T) {
	for _, text := range []string{
		`{"statusCode":201,"body":""}`,
		`{"statusCode":-7,"headers":{},"body":"a\"b\\\n\u00e9\ud83d\ude00é"}`,
		`{"statusCode":201,"headers":{"Content-Type":"application/json","X":"\u2028"},"cookies":["a=1","b"],"body":"{}","isBase64Encoded":true}`,
		`{"statusCode":999999999,"cookies":[],"body":"x","isBase64Encoded":false}`,
		` { "statusCode" : 200 , "body" : "x" } `,
	} {
		if !wantSameAnswer(t, text) {
			t.Errorf("%s was not read quickly", text)
		}
	}
	for _, text := range []string{
		``, `{}`, `null`, `[]`, `"x"`, `{"body":"x"}`, `{"statusCode":200}`, `{"statusCode":null,"body":"x"}`, `{"statusCode":200,"body":null}`,
		`{"statusCode":2e2,"body":"x"}`, `{"statusCode":200.0,"body":"x"}`, `{"statusCode":007,"body":"x"}`, `{"statusCode":1234567890123,"body":"x"}`,
		`{"statusCode":-,"body":"x"}`, `{"statusCode":"200","body":"x"}`, `{"statusCode":200,"body":"x"`, `{"statusCode":200,"body":"x"}}`,
		`{"statusCode":200,"statusCode":201,"body":"x"}`, `{"statusCode":200,"body":"x","body":"y"}`, `{"StatusCode":200,"body":"x"}`,
		`{"statusCode":200,"headers":{"A":"1","A":"2"},"body":"x"}`, `{"statusCode":200,"headers":{"A":["1"]},"body":"x"}`,
		`{"statusCode":200,"headers":null,"body":"x"}`, `{"statusCode":200,"headers":{"a":"b"},"headers":{"c":"d"},"body":"x"}`,
		`{"statusCode":200,"cookies":null,"body":"x"}`, `{"statusCode":200,"cookies":[1],"body":"x"}`, `{"statusCode":200,"cookies":["a"],"cookies":[],"body":"x"}`,
		`{"statusCode":200,"body":"x","isBase64Encoded":1}`, `{"statusCode":200,"body":"x","isBase64Encoded":true,"isBase64Encoded":false}`,
		`{"statusCode":200,"body":"eA==","bytes":true}`, `{"statusCode":200,"statusDescription":"200 OK","body":"x"}`,
		`{"statusCode":200,"multiValueHeaders":{"A":["1","2"]},"body":"x"}`, `{"statusCode":200,"body":"\ud800"}`, "{\"statusCode\":200,\"body\":\"\xff\"}",
		`{"statusCode":200,"body":"x","more":1}`,
	} {
		if wantSameAnswer(t, text) {
			t.Errorf("%q was read quickly; that is left to encoding/json", text)
		}
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add(`{"statusCode":201,"headers":{"Content-Type":"application/json"},"cookies":["a=1"],"body":"{\"a\":1}","isBase64Encoded":false}`)
	f.Fuzz(func(t *testing.T, text string) { wantSameAnswer(t, text) })
}

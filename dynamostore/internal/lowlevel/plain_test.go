package lowlevel

import "testing"

func TestPlainKeepsWhatIsAskedFor(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                                   `{}`,
		` {"New":{"a":[1]}} `:                  `{}`,
		`{"Item":{"id":{"S":"a"}},"New":1.50}`: `{"Item":{"id":{"S":"a"}}}`,
		`{"Item":null}`:                        `{}`,
		"{\"Item\":{\"id\":{\"S\":\"\xff\"}}}": "{\"Item\":{\"id\":{\"S\":\"\uFFFD\"}}}",
		`{"Item":{"n":{"N":"1"},"big":{"N":"12345678901234567890123"}}}`: `{"Item":{"big":{"N":"12345678901234567890123"},"n":{"N":"1"}}}`,
	} {
		if got, ok := Plain(body, "Item"); !ok || got != want {
			t.Errorf("Plain(%s) = %s, %v; want %s", body, got, ok, want)
		}
	}
	for _, body := range []string{``, `null`, `[]`, `"x"`, `{`, `{}{}`, `{} x`, `{"a":}`} {
		if got, ok := Plain(body, "Item"); ok {
			t.Errorf("Plain(%s) = %s; want none", body, got)
		}
	}
}

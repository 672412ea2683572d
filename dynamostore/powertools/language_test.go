package powertools_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/dynamostore/powertools"
)

// The files in testdata are made by the real libraries: see tools/powertools/check.

// readGolden decodes a file of testdata.
func readGolden[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var list []T
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestID_IsThatOfTheLibrary(t *testing.T) {
	cases := readGolden[struct {
		Data, Expression string
	}](t, "cases.json")
	for _, library := range []struct {
		language     powertools.Language
		prefix, file string
	}{
		{powertools.Python, "payments.app.handler", "python.json"},
		{powertools.TypeScript, "payments", "typescript.json"},
	} {
		want := readGolden[*string](t, library.file)
		if len(want) != len(cases) || len(want) < 100 {
			t.Fatalf("%d cases and %d ids in %s", len(cases), len(want), library.file)
		}
		for i, c := range cases {
			got, err := library.language.ID(library.prefix, []byte(c.Data))
			switch {
			case want[i] == nil || c.Data == "null":
				if !errors.Is(err, powertools.ErrNothingSelected) {
					t.Errorf("%s: %s: %q, %v; want ErrNothingSelected", library.language, c.Data, got, err)
				}
			case err != nil || got != *want[i]:
				t.Errorf("%s: %.200s %s: %q, %v; want %q", library.language, c.Data, c.Expression, got, err, *want[i])
			}
		}
	}
}

// Maven Central and NuGet did not serve the libraries for Java and .NET. These ids are therefore
// from the libraries' unit tests: BasePersistenceStoreTest.java of Powertools for Java 2.10.0, and
// BasePersistenceStoreTests.cs and IdempotencyTest.cs of Powertools for .NET 1.3.0.
func TestID_IsThatOfTheTestsOfTheLibrary(t *testing.T) {
	for _, c := range []struct {
		language     powertools.Language
		prefix, data string
		want         string
	}{
		{powertools.Java, "p", `"Lambda rocks"`, "p#70c24d88041893f7fbab4105b76fd9e1"},
		{powertools.Java, "p", `{ "id": 42, "name": "Product", "price": 12.0 }`, "p#e71c41727848ed68050d82740894c29b"},
		{powertools.Java, "p", `256.42`, "p#bb84c94278119c8838649706df4db42b"},
		{powertools.Java, "testFunction.myfunc", `43876123454654`, "testFunction.myfunc#2fef178cc82be5ce3da6c5e0466a6182"},
		{powertools.DotNet, "p", `"Lambda rocks"`, "p#70c24d88041893f7fbab4105b76fd9e1"},
		{powertools.DotNet, "p", `{"Id":42,"Name":"Product","Price":12}`, "p#c83e720b399b3b4898c8734af177c53a"},
		{powertools.DotNet, "p", ` 256.42 `, "p#bb84c94278119c8838649706df4db42b"},
		{powertools.DotNet, "MyCustomPrefixKey", `43876123454654`, "MyCustomPrefixKey#2fef178cc82be5ce3da6c5e0466a6182"},
		{powertools.DotNet, "testFunction.myfunc", `[43876123454654,"Lambda rocks"]`, "testFunction.myfunc#5ca4c8c44d427e9d43ca918a24d6cf42"},
	} {
		if got, err := c.language.ID(c.prefix, []byte(c.data)); err != nil || got != c.want {
			t.Errorf("%s: %s: %q, %v; want %q", c.language, c.data, got, err, c.want)
		}
	}
}

// Data with one value in several spellings of JSON has one id, unless the language hashes the text.
func TestID_OfOneValueIsOne(t *testing.T) {
	for _, c := range []struct {
		language   powertools.Language
		one, other string
	}{
		{powertools.Java, `{"a":"\u00e9\/\u0041","b":[1e1, -0, -0.0, 0.50, true, null]}`, `{ "a" : "é/A" , "b" : [10.0,0,-0.0,0.5,true,null]}`},
		{powertools.Java, `"é\n"`, `"\u00e9\u000a"`},
		{powertools.DotNet, `"é\n"`, ` "\u00e9\u000a"`},
		{powertools.DotNet, `true`, `"True"`},
		{powertools.DotNet, `false`, `"False"`},
	} {
		one, err := c.language.ID("p", []byte(c.one))
		other, err2 := c.language.ID("p", []byte(c.other))
		if one != other || err != nil || err2 != nil {
			t.Errorf("%s: %s has the id %q (%v) and %s has %q (%v)", c.language, c.one, one, err, c.other, other, err2)
		}
	}
	for _, c := range []struct {
		language   powertools.Language
		one, other string
	}{
		{powertools.Java, `{"a":1,"b":2}`, `{"b":2,"a":1}`},
		{powertools.Java, `[1]`, `[1.0]`},
		{powertools.DotNet, `{"a":1}`, `{"a": 1}`},
		{powertools.DotNet, `{"a":"é"}`, `{"a":"\u00e9"}`},
		{powertools.DotNet, `1.50`, `1.5`},
		{powertools.Python, `1`, `1.0`},
	} {
		one, err := c.language.ID("p", []byte(c.one))
		other, err2 := c.language.ID("p", []byte(c.other))
		if one == other || err != nil || err2 != nil {
			t.Errorf("%s: %s (%v) and %s (%v) have the id %q", c.language, c.one, err, c.other, err2, one)
		}
	}
}

func TestID_OfMissingData(t *testing.T) {
	missing := map[powertools.Language][]string{
		powertools.Python:     {`null`, `""`, `[]`, `{}`, `[null,null]`, `{"a":null}`},
		powertools.TypeScript: {`null`},
		powertools.Java:       {`null`, `[]`, `{}`, `[null,null]`, `{"a":null}`},
		powertools.DotNet:     {`null`, `""`},
	}
	for language, all := range missing {
		for _, data := range []string{`null`, `""`, `[]`, `{}`, `[null,null]`, `{"a":null}`, `{"a":[]}`, `0`, `false`} {
			id, err := language.ID("p", []byte(data))
			if errors.Is(err, powertools.ErrNothingSelected) != slices.Contains(all, data) || (err == nil) != (id != "") {
				t.Errorf("%s: %s: %q, %v", language, data, id, err)
			}
		}
	}
}

// ID refuses data for which it can't reproduce the id, because a wrong id would let the handler run
// again.
func TestID_RefusesWhatItCannotReproduce(t *testing.T) {
	everyone := []powertools.Language{powertools.Python, powertools.TypeScript, powertools.Java, powertools.DotNet}
	for _, c := range []struct {
		languages []powertools.Language
		data, why string
	}{
		{everyone, ``, "not JSON"},
		{everyone, `{"a":1`, "not JSON"},
		{everyone, `order-1`, "not JSON"},
		{everyone, `1 2`, "more than one"},
		{everyone, `{"a":1,"a":2}`, "duplicate"},
		{everyone, `{"a":{"b":1,"\u0062":2}}`, "duplicate"},
		{everyone, "\"\xff\"", "UTF-8"},
		{everyone, `"\ud800"`, "surrogate"},
		{everyone[1:2], `{"É":1}`, `"É"`},
		{everyone[1:2], `[{"a":{"aΣ":1}}]`, `"aΣ"`},
		{everyone[2:3], `10000000.5`, "10000000.5"},
		{everyone[2:3], `{"a":[0.0009]}`, "0.0009"},
		{everyone[2:3], `-1.234567890123456`, "-1.234567890123456"},
		{everyone[2:3], `1e400`, "1e400"},
	} {
		for _, language := range c.languages {
			if id, err := language.ID("p", []byte(c.data)); err == nil || !strings.Contains(err.Error(), c.why) || id != "" {
				t.Errorf("%s: %s: %q, %v; want an error with %q", language, c.data, id, err, c.why)
			}
		}
	}
}

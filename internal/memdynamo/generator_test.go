package memdynamo_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func s(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }
func n(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }

func list(e ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: append([]types.AttributeValue{}, e...)}
}

// pool has values of every type that are close to each other, so that comparisons of any two of
// them are useful tests.
var pool = []types.AttributeValue{
	s(""), s("a"), s("ab"), s("b"), s("é"), s("2"),
	n("0"), n("1"), n("2"), n("-1"), n("1.0"), n("10"), n("1e1"), n("0.1"),
	n("12345678901234567890123456789012345678"), n("12345678901234567890123456789012345677"), n("1e-30"),
	&types.AttributeValueMemberB{Value: []byte{}}, &types.AttributeValueMemberB{Value: []byte("a")}, &types.AttributeValueMemberB{Value: []byte{0xFF, 'a'}},
	&types.AttributeValueMemberBOOL{Value: true}, &types.AttributeValueMemberBOOL{Value: false},
	&types.AttributeValueMemberNULL{Value: true},
	list(), list(n("1")), list(s("a"), n("1.0"), list()), list(n("2"), n("1"), s("ab")),
	&types.AttributeValueMemberM{Value: attributes{}},
	&types.AttributeValueMemberM{Value: attributes{"x": n("1")}},
	&types.AttributeValueMemberM{Value: attributes{"x": s("a"), "y": list(n("1"), s("b"))}},
	&types.AttributeValueMemberM{Value: attributes{"x": &types.AttributeValueMemberM{Value: attributes{"x": n("2"), "y": s("b")}}}},
	&types.AttributeValueMemberSS{Value: []string{"a"}}, &types.AttributeValueMemberSS{Value: []string{"ab", "a"}},
	&types.AttributeValueMemberNS{Value: []string{"1"}}, &types.AttributeValueMemberNS{Value: []string{"2", "1.0", "10"}},
	&types.AttributeValueMemberBS{Value: [][]byte{[]byte("a")}}, &types.AttributeValueMemberBS{Value: [][]byte{{0xFF}, []byte("a")}},
}

// These are the positions in pool of the values that an operator accepts. Now and then, the
// generator uses another value by mistake, on purpose.
var (
	ordered = places(0, 19)
	numbers = places(6, 16)
	lists   = places(23, 26)
	sets    = places(31, 36)
	addable = append(places(6, 16), sets...)
)

func places(first, last int) []int {
	var out []int
	for i := first; i <= last; i++ {
		out = append(out, i)
	}
	return out
}

// valuePool has the values of pool and the names of types, by placeholder.
var valuePool = func() attributes {
	out := attributes{}
	for i, v := range pool {
		out[fmt.Sprintf(":v%d", i)] = v
	}
	for _, typ := range typeNames {
		out[":t"+typ] = s(typ)
	}
	return out
}()

var typeNames = []string{"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}

var aliasPool = map[string]string{"#a": "a", "#status": "status", "#x": "x"}

type generator struct{ *rand.Rand }

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }
func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g generator) value() types.AttributeValue { return pool[g.IntN(len(pool))] }

// placeholder returns the placeholder of a random value at one of the positions in of. If of is
// empty, and in 3 % of all cases, it returns that of any value in pool.
func (g generator) placeholder(of ...int) string {
	if of == nil || g.chance(3) {
		return fmt.Sprintf(":v%d", g.IntN(len(pool)))
	}
	return fmt.Sprintf(":v%d", of[g.IntN(len(of))])
}

// item returns an item with some attributes of random types, or nil in some cases.
func (g generator) item() attributes {
	if g.chance(10) {
		return nil
	}
	item := maps.Clone(key)
	for _, name := range []string{"a", "b", "c", "d", "status"} {
		if g.chance(80) {
			item[name] = g.value()
		}
	}
	if g.chance(3) { // some items need more than one capacity unit
		item["big"] = s(strings.Repeat("x", g.IntN(9000)))
	}
	return item
}

func (g generator) path() string {
	p := g.one("a", "b", "c", "d", "a", "b", "c", "#a", "#status", "missing")
	for g.chance(30) {
		p += g.one(".x", ".y", ".#x", "[0]", "[1]", "[2]")
	}
	return p
}

func (g generator) operand(of ...int) string {
	switch {
	case g.chance(50):
		return g.path()
	case g.chance(80):
		return g.placeholder(of...)
	case g.chance(90):
		return "size(" + g.path() + ")"
	default:
		return "(" + g.path() + ")"
	}
}

func (g generator) condition(depth int) *tree {
	if depth > 0 && g.chance(60) {
		switch g.IntN(5) {
		case 0:
			return &tree{op: "NOT", kids: []*tree{g.condition(depth - 1)}}
		case 1:
			inner := g.condition(depth - 1)
			if inner.op == "()" { // DynamoDB refuses doubled parentheses
				return inner
			}
			return &tree{op: "()", kids: []*tree{inner}}
		default:
			// AND and OR without parentheses, to test their precedence.
			return &tree{op: g.one("AND", "OR"), kids: []*tree{g.condition(depth - 1), g.condition(depth - 1)}}
		}
	}
	return &tree{text: g.leaf()}
}

func (g generator) leaf() string {
	switch g.IntN(12) {
	case 0:
		return "attribute_exists(" + g.path() + ")"
	case 1:
		return "attribute_not_exists(" + g.path() + ")"
	case 2:
		return "attribute_type(" + g.path() + ", :t" + g.one(typeNames...) + ")"
	case 3:
		return "begins_with(" + g.path() + ", " + g.placeholder(0, 1, 2, 3, 4, 5, 17, 18, 19) + ")"
	case 4:
		return "contains(" + g.operand() + ", " + g.operand() + ")"
	case 5:
		bounds := g.one(":v0 AND :v1", ":v1 AND :v4", ":v9 AND :v7", ":v7 AND :v11", ":v7 AND :v10", ":v17 AND :v18", g.path()+" AND "+g.operand(ordered...))
		return g.operand(ordered...) + " BETWEEN " + bounds
	case 6:
		in := g.operand() + " IN (" + g.operand()
		for g.chance(50) {
			in += ", " + g.operand()
		}
		return in + ")"
	case 7:
		if g.chance(5) { // errors that any expression may have
			return g.one("status = :v1", ":undefined = a", "a = #undefined", "a = ", "foo(a)", "a = b c = d", "((a = b))")
		}
		fallthrough
	default:
		if g.chance(50) {
			return g.operand() + " " + g.one("=", "<>") + " " + g.operand()
		}
		return g.operand(ordered...) + " " + g.one("<", "<=", ">", ">=") + " " + g.operand(ordered...)
	}
}

func (g generator) clauses() []clause {
	var out []clause
	for more := true; more; more = g.chance(40) {
		c := clause{section: g.one("SET", "SET", "REMOVE", "ADD", "DELETE"), path: g.path()}
		switch c.section {
		case "SET":
			c.rest = " = " + g.setValue()
		case "ADD":
			c.rest = " " + g.placeholder(addable...)
		case "DELETE":
			c.rest = " " + g.placeholder(sets...)
		}
		out = append(out, c)
	}
	return out
}

func (g generator) setValue() string {
	operand := func(of ...int) string {
		switch g.IntN(6) {
		case 0, 1:
			return "if_not_exists(" + g.path() + ", " + g.placeholder(of...) + ")"
		case 2:
			return g.path()
		default:
			return g.placeholder(of...)
		}
	}
	switch g.IntN(6) {
	case 0, 1:
		return operand(numbers...) + g.one(" + ", " - ") + operand(numbers...)
	case 2:
		return "list_append(" + operand(lists...) + ", " + operand(lists...) + ")"
	default:
		return operand()
	}
}

func (g generator) request(before attributes) request {
	for {
		r := request{op: g.one("UpdateItem", "UpdateItem", "UpdateItem", "UpdateItem", "PutItem", "DeleteItem", "GetItem"), old: g.chance(50)}
		if r.op != "GetItem" && g.chance(85) {
			r.condition = g.condition(3)
		}
		switch r.op {
		case "PutItem":
			for r.item == nil {
				r.item = g.item()
			}
			r.returnValues = g.one("", "NONE", "ALL_OLD", "ALL_OLD")
		case "DeleteItem":
			r.returnValues = g.one("", "NONE", "ALL_OLD", "ALL_OLD")
		case "UpdateItem":
			r.returnValues = g.one("", "NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
			if g.chance(50) {
				r.update = g.clauses()
			}
		case "GetItem":
			r.returnValues, r.old = "", false
			for g.chance(60) {
				r.projection = append(r.projection, g.path())
			}
		}
		if !knownToDiffer(before, r) {
			return r
		}
	}
}

// knownToDiffer reports whether DynamoDB Local is known to differ from AWS for this request. See
// the package documentation.
func knownToDiffer(before attributes, r request) bool {
	takesOnly, nested := r.update != nil, false
	for _, c := range r.update {
		takesOnly = takesOnly && (c.section == "REMOVE" || c.section == "DELETE")
		nested = nested || strings.ContainsAny(c.path, ".[")
	}
	return before == nil && takesOnly || nested && strings.HasPrefix(r.returnValues, "UPDATED_")
}

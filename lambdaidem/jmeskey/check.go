package jmeskey

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/jmespath/go-jmespath"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// What of JMESPath is safe where numbers are json.Number, and leads to a key that is
// of one thing alone: an expression is looked at once, when it is compiled. The
// library shows its syntax tree by reflection only.

// maxExpression bounds an expression in bytes: its parser recurses.
const maxExpression = 4096

// maxSlice bounds the numbers of a slice: the library adds them up without a look
// at what overflows, and then reads beyond the list.
const maxSlice = 1_000_000

// check says why an expression is refused.
func check(expression string) error {
	switch {
	case len(expression) > maxExpression:
		return fmt.Errorf("it has %d bytes; at most %d are allowed", len(expression), maxExpression)
	case !utf8.ValidString(expression):
		return errors.New("it is not UTF-8")
	case strings.ContainsRune(expression, '\u0080'):
		return errors.New("it has the control character U+0080, on which the parser panics")
	}
	tree, err := jmespath.NewParser().Parse(expression)
	if err != nil {
		return err
	}
	root := node{reflect.ValueOf(tree)}
	if root.tellsTruth() {
		return errTruth
	}
	return root.check(asResult)
}

// position is what becomes of a node's value.
type position int

const (
	asResult   position = iota // it is the result, or a part of what is put together for it
	insideOf                   // something else is made of it
	comparedTo                 // something is compared to it: it may be a literal
)

// node is a node of the syntax tree.
type node struct{ v reflect.Value }

// kind returns one of the library's AST constants, whose type it keeps to itself.
func (n node) kind() int { return int(n.v.FieldByName("nodeType").Int()) }

// value returns what else there is to a node: a name, an operator, a literal.
func (n node) value() reflect.Value { return n.v.FieldByName("value").Elem() }

func (n node) children() []node {
	list := n.v.FieldByName("children")
	all := make([]node, list.Len())
	for i := range all {
		all[i] = node{list.Index(i)}
	}
	return all
}

func (n node) isLiteral() bool { return n.kind() == int(jmespath.ASTLiteral) }

// isText reports whether a node is a literal of a text that is not empty.
func (n node) isText() bool {
	return n.isLiteral() && n.value().Kind() == reflect.String && n.value().Len() > 0
}

// tellsTruth reports whether the result can be nothing but true or false.
func (n node) tellsTruth() bool {
	switch n.kind() {
	case int(jmespath.ASTComparator), int(jmespath.ASTNotExpression):
		return true
	case int(jmespath.ASTFunctionExpression):
		return functions[n.name()].truth
	}
	return false
}

// name returns that of a function.
func (n node) name() string {
	if v := n.value(); v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

func (n node) check(at position) error {
	children := n.children()
	switch n.kind() {
	case int(jmespath.ASTField), int(jmespath.ASTCurrentNode), int(jmespath.ASTIdentity), int(jmespath.ASTIndex):
		return nil
	case int(jmespath.ASTKeyValPair):
		return children[0].check(at)
	case int(jmespath.ASTOrExpression):
		return checkAll(children, at, at)
	case int(jmespath.ASTAndExpression), int(jmespath.ASTPipe), int(jmespath.ASTSubexpression), int(jmespath.ASTIndexExpression), int(jmespath.ASTProjection):
		return checkAll(children, insideOf, at)
	case int(jmespath.ASTFilterProjection): // what, the projection of it, the condition
		return checkAll(children, insideOf, at, insideOf)
	case int(jmespath.ASTFlatten), int(jmespath.ASTNotExpression):
		return checkAll(children, insideOf)
	case int(jmespath.ASTSlice):
		return n.checkSlice()
	case int(jmespath.ASTComparator):
		return n.checkComparison()
	case int(jmespath.ASTMultiSelectList), int(jmespath.ASTMultiSelectHash):
		return n.checkParts(at)
	case int(jmespath.ASTFunctionExpression):
		return n.checkCall(at)
	case int(jmespath.ASTLiteral):
		return n.checkLiteral(at)
	case int(jmespath.ASTValueProjection):
		return errors.New(`"*" takes the members of an object in another order each time; name them: [a, b]`)
	case int(jmespath.ASTExpRef):
		return errors.New(`"&" may stand in map alone`)
	default: // ASTEmpty, which the parser leaves where it overlooks an error
		return errors.New("it is incomplete")
	}
}

// checkAll checks a node's children, the i-th in the i-th position.
func checkAll(nodes []node, at ...position) error {
	for i, is := range at {
		if err := nodes[i].check(is); err != nil {
			return err
		}
	}
	return nil
}

func (n node) checkSlice() error {
	parts := n.value() // start, stop and step, nil where they are not given
	for i := range parts.Len() {
		part := parts.Index(i)
		if part.IsNil() {
			continue
		}
		switch number := part.Elem().Int(); {
		case number > maxSlice || number < -maxSlice:
			return fmt.Errorf("%d in a slice is too large", number)
		case i == 2 && number == 0:
			return errors.New("the step of a slice is 0")
		}
	}
	return nil
}

// equalities are the library's tokens of == and !=, whose type it keeps to itself.
var equalities = [...]int64{operatorOf("a == b"), operatorOf("a != b")}

func operatorOf(comparison string) int64 {
	tree, err := jmespath.NewParser().Parse(comparison)
	if err != nil {
		panic(err) // it is written here
	}
	return node{reflect.ValueOf(tree)}.value().Int()
}

func (n node) checkComparison() error {
	if operator := n.value().Int(); operator != equalities[0] && operator != equalities[1] {
		return errors.New("<, <=, > and >= compare numbers, which are their texts here")
	}
	sides := n.children()
	if sides[0].isLiteral() == sides[1].isLiteral() {
		return errors.New("== and != compare to a text, true, false or null alone: numbers are their texts here")
	}
	return checkAll(sides, comparedTo, comparedTo)
}

// checkParts checks what is put together. Its parts are missed only where all of it
// goes into the result.
func (n node) checkParts(at position) error {
	if at != asResult {
		return errors.New("what [a, b] or {x: a} put together must be the result: what is made of it would not miss a part")
	}
	onlyLiterals, names := true, map[string]int{}
	parts := n.children()
	for _, part := range parts {
		if part.kind() == int(jmespath.ASTKeyValPair) {
			names[part.name()]++
			part = part.children()[0]
		}
		if part.isText() {
			continue
		}
		onlyLiterals = false
		if err := part.check(asResult); err != nil {
			return err
		}
	}
	if onlyLiterals {
		return errConstant
	}
	if len(names) > 0 {
		text, err := json.Marshal(names)
		if _, ok := canon.Append(nil, text, canon.Limits{}); err != nil || !ok || len(names) < len(parts) {
			return errors.New("two members have one name, or names that some readers take for one")
		}
	}
	return nil
}

var errConstant = errors.New("a literal would be the key of whatever it stands in for; it may stand in a comparison, or be a text in [a, b]")

func (n node) checkLiteral(at position) error {
	if at != comparedTo {
		return errConstant
	}
	switch v := n.value(); v.Kind() {
	case reflect.Invalid, reflect.String, reflect.Bool: // null is no value at all
		return nil
	default:
		return errors.New("only a text, true, false and null can be compared to")
	}
}

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

// This file decides which expressions New accepts. It rejects expressions that can't work with
// numbers of type json.Number, and expressions that can give the same key for different
// values. It walks the library's syntax tree by reflection, because the fields of the tree are
// not exported.

// maxExpression is the maximum length of an expression in bytes. It bounds the recursion of
// the JMESPath library's parser.
const maxExpression = 4096

// maxSlice is the maximum absolute value of the numbers in a slice such as [0:10]. The JMESPath
// library adds such numbers without checking for overflow. After an overflow, it would read
// beyond the end of the list.
const maxSlice = 1_000_000

// check returns nil if the expression is accepted, or an error that says why not.
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
	if root.isBoolean() {
		return errBoolean
	}
	return root.check(asResult)
}

// position says how the rest of the expression uses a node's value.
type position int

const (
	asResult   position = iota // the value is the result, or a part of the list or object that is the result
	insideOf                   // the value is an intermediate one: another value is computed from it
	comparedTo                 // the value is compared with another one, so it may be a literal
)

// node is a node of the JMESPath library's syntax tree. v holds a jmespath.ASTNode. The methods of
// node read the fields of the ASTNode by reflection, because these fields are not exported.
type node struct{ v reflect.Value }

// kind returns the kind of the node, which is one of the JMESPath library's constants, such as
// jmespath.ASTField. It returns an int, because the library does not export the type of these
// constants.
func (n node) kind() int { return int(n.v.FieldByName("nodeType").Int()) }

// value returns the node's own value, such as a name, an operator or a literal.
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

// isText reports whether a node is the literal of a non-empty string.
func (n node) isText() bool {
	return n.isLiteral() && n.value().Kind() == reflect.String && n.value().Len() > 0
}

// isBoolean reports whether the value of the node is always true or false.
func (n node) isBoolean() bool {
	switch n.kind() {
	case int(jmespath.ASTComparator), int(jmespath.ASTNotExpression):
		return true
	case int(jmespath.ASTFunctionExpression):
		return functions[n.name()].boolean
	}
	return false
}

// name returns the node's value if it is a string, such as the name of a function or of a
// member. Otherwise it returns "".
func (n node) name() string {
	if v := n.value(); v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

// check returns an error if the node, used in this position, can't be part of a key's
// expression.
func (n node) check(pos position) error {
	children := n.children()
	switch n.kind() {
	case int(jmespath.ASTField), int(jmespath.ASTCurrentNode), int(jmespath.ASTIdentity), int(jmespath.ASTIndex):
		return nil
	case int(jmespath.ASTKeyValPair):
		return children[0].check(pos)
	case int(jmespath.ASTOrExpression):
		return checkAll(children, pos, pos)
	case int(jmespath.ASTAndExpression), int(jmespath.ASTPipe), int(jmespath.ASTSubexpression), int(jmespath.ASTIndexExpression), int(jmespath.ASTProjection):
		return checkAll(children, insideOf, pos)
	case int(jmespath.ASTFilterProjection): // children: the list, the expression for each element, the condition
		return checkAll(children, insideOf, pos, insideOf)
	case int(jmespath.ASTFlatten), int(jmespath.ASTNotExpression):
		return checkAll(children, insideOf)
	case int(jmespath.ASTSlice):
		return n.checkSlice()
	case int(jmespath.ASTComparator):
		return n.checkComparison()
	case int(jmespath.ASTMultiSelectList), int(jmespath.ASTMultiSelectHash):
		return n.checkParts(pos)
	case int(jmespath.ASTFunctionExpression):
		return n.checkCall(pos)
	case int(jmespath.ASTLiteral):
		return n.checkLiteral(pos)
	case int(jmespath.ASTValueProjection):
		return errors.New(`"*" takes the members of an object in another order each time; name them: [a, b]`)
	case int(jmespath.ASTExpRef):
		return errors.New(`"&" may stand in map alone`)
	default: // ASTEmpty, which the parser returns for some errors that it overlooks
		return errors.New("it is incomplete")
	}
}

// checkAll calls nodes[i].check(positions[i]) for each of the positions, and returns the first
// error. It ignores nodes without a position.
func checkAll(nodes []node, positions ...position) error {
	for i, pos := range positions {
		if err := nodes[i].check(pos); err != nil {
			return err
		}
	}
	return nil
}

func (n node) checkSlice() error {
	parts := n.value() // start, stop and step; nil if omitted
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

// equalities are the JMESPath library's numbers for the operators == and !=. The library does not
// export its constants for them, so operatorOf gets the numbers by parsing expressions that contain
// these operators.
var equalities = [...]int64{operatorOf("a == b"), operatorOf("a != b")}

// operatorOf parses a comparison and returns the JMESPath library's number for its operator.
func operatorOf(comparison string) int64 {
	tree, err := jmespath.NewParser().Parse(comparison)
	if err != nil {
		panic(err) // can't happen: the comparisons are constants of this package
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

// checkParts checks a list [a, b] or an object {x: a} that the expression builds. It accepts the
// list or object only as the expression's result or as a part of the result, because keyOf looks
// for missing parts only there.
func (n node) checkParts(pos position) error {
	if pos != asResult {
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

func (n node) checkLiteral(pos position) error {
	if pos != comparedTo {
		return errConstant
	}
	switch v := n.value(); v.Kind() {
	case reflect.Invalid, reflect.String, reflect.Bool: // reflect.Invalid is null
		return nil
	default:
		return errors.New("only a text, true, false and null can be compared to")
	}
}

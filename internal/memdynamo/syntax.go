package memdynamo

import (
	"fmt"
	"slices"
	"strings"
)

// This file parses DynamoDB's expressions ("Comparison operator and function reference", "Update
// expressions") into syntax trees. The file bind.go resolves the names and values in a tree.

type nodeKind int

const (
	pathNode    nodeKind = iota // text: the source; elements: the steps
	valueNode                   // text: ":name"
	callNode                    // text: the function's name; kids: its arguments
	parenNode                   // kids: the node in parentheses
	notNode                     // kids: the negated condition
	andNode                     // kids: two
	orNode                      // kids: two
	compareNode                 // text: the operator; kids: two
	betweenNode                 // kids: operand, lower, upper
	inNode                      // kids: operand, then the list
	plusNode                    // text: + or -; kids: two
)

type node struct {
	kind     nodeKind
	text     string
	elements []element
	kids     []*node
}

// element is one step of a document path as it is written: a name, with or without #, or a list
// index.
type element struct {
	name  string
	index string // digits; set when name is empty
}

// isOperand reports whether the node is an operand, not a condition.
func (n *node) isOperand() bool {
	switch n.innermost().kind {
	case pathNode, valueNode, callNode:
		return true
	}
	return false
}

// innermost returns the node without the parentheses around it.
func (n *node) innermost() *node {
	for n.kind == parenNode {
		n = n.kids[0]
	}
	return n
}

// clause is one action of an update expression.
type clause struct {
	section string // SET, REMOVE, ADD or DELETE
	path    *node
	value   *node // nil for REMOVE
}

const (
	maxExpressionSize = 4096 // bytes ("Constraints", Expression parameters)
	maxOperators      = 300  // operators and functions in one expression
	maxInOperands     = 100
)

// parser is a recursive descent parser for one expression. Its methods panic with a
// validationError, which catch converts into an error.
type parser struct {
	source    string
	tokens    []token
	pos       int
	operators int
}

type token struct {
	text       string
	start, end int
}

// validationError is the message of a ValidationException.
type validationError string

func (e validationError) Error() string { return string(e) }

func invalidf(format string, args ...any) validationError {
	return validationError(fmt.Sprintf(format, args...))
}

// catch recovers from the panic of a parser or binder and stores its error in err.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case validationError:
		*err = r
	default:
		panic(r)
	}
}

func newParser(source string) *parser {
	if source == "" {
		panic(invalidf("The expression can not be empty;"))
	}
	if len(source) > maxExpressionSize {
		panic(invalidf("Expression size has exceeded the maximum allowed size; expression size: %d", len(source)))
	}
	return &parser{source: source, tokens: tokenize(source)}
}

func tokenize(s string) []token {
	var tokens []token
	for i := 0; i < len(s); {
		start := i
		switch c := s[i]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
			continue
		case isLetter(c):
			for i++; i < len(s) && isWord(s[i]); i++ {
			}
		case (c == '#' || c == ':') && i+1 < len(s) && isWord(s[i+1]):
			for i++; i < len(s) && isWord(s[i]); i++ {
			}
		case c == '0': // an index has no leading zeros, so 00 is two tokens
			i++
		case '1' <= c && c <= '9':
			for i++; i < len(s) && isDigit(s[i]); i++ {
			}
		case strings.HasPrefix(s[i:], "<>"), strings.HasPrefix(s[i:], "<="), strings.HasPrefix(s[i:], ">="):
			i += 2
		default: // one character of any width in UTF-8, even if it is invalid here
			for i++; i < len(s) && s[i]&0xC0 == 0x80; i++ {
			}
		}
		tokens = append(tokens, token{text: s[start:i], start: start, end: i})
	}
	return append(tokens, token{text: "<EOF>", start: len(s), end: len(s)})
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) || c == '_' }

// peek returns the next token's text.
func (p *parser) peek() string { return p.tokens[p.pos].text }

// atEnd reports whether the whole source was read.
func (p *parser) atEnd() bool { return p.pos == len(p.tokens)-1 }

// keyword returns the next token in upper case if it is a keyword, and "" otherwise. All keywords
// are reserved in all kinds of expressions, so none of them can be an attribute name.
func (p *parser) keyword() string {
	next := p.peek()
	for _, word := range keywords {
		if len(word) == len(next) && strings.EqualFold(word, next) {
			return word
		}
	}
	return ""
}

var (
	sections = []string{"SET", "REMOVE", "ADD", "DELETE"}
	keywords = []string{"SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "BETWEEN", "IN"}
)

// take consumes the next token if it equals text, and reports whether it did.
func (p *parser) take(text string) bool {
	if p.atEnd() || p.peek() != text {
		return false
	}
	p.pos++
	return true
}

func (p *parser) takeKeyword(word string) bool {
	if p.keyword() != word {
		return false
	}
	p.pos++
	return true
}

func (p *parser) expect(text string) {
	if !p.take(text) {
		p.fail()
	}
}

// fail panics with a syntax error for the next token, which also shows the neighboring tokens.
func (p *parser) fail() {
	from, to := max(p.pos-1, 0), min(p.pos+1, len(p.tokens)-1)
	near := p.source[p.tokens[from].start:p.tokens[to].end]
	if len(p.tokens) == 1 {
		near = p.source
	}
	panic(invalidf("Syntax error; token: %q, near: %q", verbatim(p.peek()), verbatim(near)))
}

// verbatim is a string that %q prints in quotes without escaping it, as DynamoDB does.
type verbatim string

func (v verbatim) Format(s fmt.State, _ rune) { _, _ = fmt.Fprintf(s, `"%s"`, string(v)) }

// operator counts one operator or function, and panics if there are more than DynamoDB allows.
func (p *parser) operator() {
	if p.operators++; p.operators > maxOperators {
		panic(invalidf("The expression contains too many operators; operator count: %d", p.operators))
	}
}

// parseCondition parses a condition, filter or key condition.
func parseCondition(source string) (n *node, err error) {
	defer catch(&err)
	p := newParser(source)
	n = p.or(false)
	if !p.atEnd() {
		p.fail()
	}
	return n, nil
}

// or parses a disjunction. In parentheses there can also be a single operand, as in (a) = :b.
// bare is true if a single operand is allowed.
func (p *parser) or(bare bool) *node {
	n := p.and(bare)
	for p.takeKeyword("OR") {
		p.operator()
		n = &node{kind: orNode, kids: []*node{n, p.and(false)}}
	}
	return n
}

func (p *parser) and(bare bool) *node {
	n := p.not(bare)
	for p.takeKeyword("AND") {
		p.operator()
		n = &node{kind: andNode, kids: []*node{n, p.not(false)}}
	}
	return n
}

func (p *parser) not(bare bool) *node {
	if p.takeKeyword("NOT") {
		p.operator()
		return &node{kind: notNode, kids: []*node{p.not(false)}}
	}
	return p.comparison(bare)
}

func (p *parser) comparison(bare bool) *node {
	var left *node
	if p.take("(") {
		left = &node{kind: parenNode, kids: []*node{p.or(true)}}
		p.expect(")")
	} else {
		left = p.operand()
	}
	if !left.isOperand() {
		return left
	}
	switch op := p.peek(); {
	case !p.atEnd() && slices.Contains(comparators, op):
		p.pos++
		p.operator()
		return &node{kind: compareNode, text: op, kids: []*node{left, p.operand()}}
	case p.takeKeyword("BETWEEN"):
		p.operator()
		lower := p.operand()
		if !p.takeKeyword("AND") {
			p.fail()
		}
		return &node{kind: betweenNode, text: "BETWEEN", kids: []*node{left, lower, p.operand()}}
	case p.takeKeyword("IN"):
		p.operator()
		p.expect("(")
		return &node{kind: inNode, text: "IN", kids: append([]*node{left}, p.list()...)}
	case left.innermost().kind == callNode || bare && op == ")":
		return left
	}
	p.fail()
	return nil
}

var comparators = []string{"=", "<>", "<", "<=", ">", ">="}

// operand parses a path, a value, a function call, or one of these in parentheses.
func (p *parser) operand() *node {
	switch next := p.peek(); {
	case p.atEnd() || p.keyword() != "":
	case next == "(":
		p.pos++
		n := &node{kind: parenNode, kids: []*node{p.operand()}}
		p.expect(")")
		return n
	case next[0] == ':' && len(next) > 1:
		p.pos++
		return &node{kind: valueNode, text: next}
	case isLetter(next[0]) && p.tokens[p.pos+1].text == "(":
		p.pos += 2
		p.operator()
		return &node{kind: callNode, text: next, kids: p.list()}
	default:
		return p.path()
	}
	p.fail()
	return nil
}

// list parses operands up to and including the closing parenthesis. The opening parenthesis has
// been consumed.
func (p *parser) list() []*node {
	kids := []*node{p.operand()}
	for p.take(",") {
		kids = append(kids, p.operand())
	}
	p.expect(")")
	return kids
}

// path parses a document path, such as a.#b[0].c.
func (p *parser) path() *node {
	start := p.tokens[p.pos].start
	n := &node{kind: pathNode, elements: []element{p.name()}}
	for {
		switch {
		case p.take("."):
			n.elements = append(n.elements, p.name())
			continue
		case p.take("["):
			index := p.peek()
			if !isDigit(index[0]) {
				p.fail()
			}
			p.pos++
			p.expect("]")
			n.elements = append(n.elements, element{index: index})
			continue
		}
		n.text = p.source[start:p.tokens[p.pos-1].end]
		return n
	}
}

func (p *parser) name() element {
	text := p.peek()
	if p.atEnd() || p.keyword() != "" || !isLetter(text[0]) && (text[0] != '#' || len(text) == 1) {
		p.fail()
	}
	p.pos++
	return element{name: text}
}

// parseProjection parses a list of paths.
func parseProjection(source string) (paths []*node, err error) {
	defer catch(&err)
	p := newParser(source)
	paths = []*node{p.path()}
	for p.take(",") {
		paths = append(paths, p.path())
	}
	if !p.atEnd() {
		p.fail()
	}
	return paths, nil
}

// parseUpdate parses an update expression.
func parseUpdate(source string) (clauses []clause, err error) {
	defer catch(&err)
	p := newParser(source)
	seen := map[string]bool{}
	for first := true; first || !p.atEnd(); first = false {
		section := p.keyword()
		if !slices.Contains(sections, section) {
			p.fail()
		}
		p.pos++
		if seen[section] {
			panic(invalidf("The %q section can only be used once in an update expression;", section))
		}
		seen[section] = true
		for more := true; more; more = p.take(",") {
			clauses = append(clauses, p.clause(section))
		}
	}
	return clauses, nil
}

func (p *parser) clause(section string) clause {
	c := clause{section: section, path: p.path()}
	switch section {
	case "SET":
		p.operator()
		p.expect("=")
		c.value = p.sum()
	case "ADD", "DELETE":
		p.operator()
		text := p.peek()
		if text[0] != ':' || len(text) == 1 {
			p.fail()
		}
		p.pos++
		c.value = &node{kind: valueNode, text: text}
	case "REMOVE":
		p.operator()
	}
	return c
}

// sum parses the right side of SET: one operand, or two operands with + or -. The sum may be in
// parentheses.
func (p *parser) sum() *node {
	var left *node
	if p.take("(") {
		left = &node{kind: parenNode, kids: []*node{p.sum()}}
		p.expect(")")
		if left.innermost().kind == plusNode {
			return left
		}
	} else {
		left = p.operand()
	}
	if op := p.peek(); op == "+" || op == "-" {
		p.pos++
		p.operator()
		return &node{kind: plusNode, text: op, kids: []*node{left, p.operand()}}
	}
	return left
}

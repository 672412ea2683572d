package memdynamo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// scope has the names and values that a request defines for its expressions. It records which of
// them the expressions use, because DynamoDB refuses a request that defines a name or value and
// doesn't use it.
type scope struct {
	names      map[string]string
	values     map[string]Value
	usedNames  map[string]bool
	usedValues map[string]bool
}

// newScope checks the names and values that a request defines. names and values are nil if the
// request has none. All expressions may use names, but only those in valued may use values; a
// projection may not.
func newScope(names map[string]string, values map[string]Value, projection *string, valued ...expression) (*scope, error) {
	s := &scope{
		names: names, values: make(map[string]Value, len(values)),
		usedNames: map[string]bool{}, usedValues: map[string]bool{},
	}
	var kinds []string
	hasValued := false
	for _, e := range valued {
		kinds = append(kinds, e.kind)
		hasValued = hasValued || e.source != nil
	}
	switch {
	case names != nil && !hasValued && projection == nil:
		return nil, invalidf("ExpressionAttributeNames can only be specified when using expressions")
	case values != nil && !hasValued:
		verb := "is"
		if len(kinds) > 1 {
			verb = "are"
		}
		return nil, invalidf("ExpressionAttributeValues can only be specified when using expressions: %s %s null", strings.Join(kinds, " and "), verb)
	case names != nil && len(names) == 0:
		return nil, invalidf("ExpressionAttributeNames must not be empty")
	case values != nil && len(values) == 0:
		return nil, invalidf("ExpressionAttributeValues must not be empty")
	}
	for _, alias := range slices.Sorted(maps.Keys(names)) {
		if !isPlaceholder(alias, '#') {
			return nil, invalidf("ExpressionAttributeNames contains invalid key: Syntax error; key: \"%s\"", alias)
		}
		if names[alias] == "" {
			return nil, invalidf("ExpressionAttributeNames contains invalid value: Empty attribute name for key %s", alias)
		}
	}
	for _, alias := range slices.Sorted(maps.Keys(values)) {
		if !isPlaceholder(alias, ':') {
			return nil, invalidf("ExpressionAttributeValues contains invalid key: Syntax error; key: \"%s\"", alias)
		}
		v, err := values[alias].checked()
		if err != nil {
			return nil, invalidf("ExpressionAttributeValues contains invalid value: %v for key %s", err, alias)
		}
		s.values[alias] = v
	}
	return s, nil
}

// expression is one expression parameter of a request. source is nil if the request doesn't have
// the parameter.
type expression struct {
	kind   string // the parameter's name
	source *string
}

// refuse returns err with the name of the expression, in DynamoDB's wording.
func (e expression) refuse(err error) error {
	return invalidf("Invalid %s: %v", e.kind, err)
}

func isPlaceholder(s string, sigil byte) bool {
	if len(s) < 2 || s[0] != sigil {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !isWord(s[i]) {
			return false
		}
	}
	return true
}

// checkUsed returns an error if a name or value is not used by any expression.
func (s *scope) checkUsed() error {
	unused := func(all []string, used map[string]bool) string {
		return strings.Join(slices.DeleteFunc(all, func(a string) bool { return used[a] }), ", ")
	}
	if left := unused(slices.Sorted(maps.Keys(s.names)), s.usedNames); left != "" {
		return invalidf("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", left)
	}
	if left := unused(slices.Sorted(maps.Keys(s.values)), s.usedValues); left != "" {
		return invalidf("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", left)
	}
	return nil
}

// binder converts a syntax tree into a form that can be evaluated. Like those of the parser, its
// methods panic with a validationError.
type binder struct {
	*scope
	update bool // set for an update expression, but not for a condition
}

// precheck refuses what DynamoDB refuses before it looks at names and values: doubled
// parentheses, unknown functions and reserved words.
func (b binder) precheck(n *node) {
	switch n.kind {
	case parenNode:
		if n.kids[0].kind == parenNode {
			panic(invalidf("The expression has redundant parentheses;"))
		}
	case callNode:
		switch n.text {
		case "if_not_exists", "list_append":
			if !b.update {
				panic(invalidf("The function is not allowed in a condition expression; function: %s", n.text))
			}
		case "attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size":
			if b.update {
				panic(invalidf("The function is not allowed in an update expression; function: %s", n.text))
			}
		default:
			panic(invalidf("Invalid function name; function: %s", n.text))
		}
	case pathNode:
		for _, e := range n.elements {
			if e.name != "" && isReserved(e.name) {
				panic(invalidf("Attribute name is a reserved keyword; reserved keyword: %s", e.name))
			}
		}
	}
	for _, kid := range n.kids {
		b.precheck(kid)
	}
}

// step is one step of a resolved document path.
type step struct {
	name  string
	index int // list index; used if name is empty
}

// path is a resolved document path.
type path []step

func (b binder) path(n *node) path {
	if len(n.elements) > maxDepth {
		panic(invalidf("The document path has too many nesting levels; nesting levels: %d", len(n.elements)))
	}
	out := make(path, 0, len(n.elements))
	for _, e := range n.elements {
		switch {
		case e.name == "":
			index, err := strconv.ParseInt(e.index, 10, 32)
			if err != nil {
				panic(invalidf("List index is not within the allowable range; index: [%s]", e.index))
			}
			out = append(out, step{index: int(index)})
		case e.name[0] == '#':
			name, ok := b.names[e.name]
			if !ok {
				panic(invalidf("An expression attribute name used in the document path is not defined; attribute name: %s", e.name))
			}
			b.usedNames[e.name] = true
			out = append(out, step{name: name})
		default:
			out = append(out, step{name: e.name})
		}
	}
	return out
}

func (b binder) value(alias string) Value {
	v, ok := b.values[alias]
	if !ok {
		panic(invalidf("An expression attribute value used in expression is not defined; attribute value: %s", alias))
	}
	b.usedValues[alias] = true
	return v
}

// String returns the path as in DynamoDB's messages: [a, b, [0]].
func (p path) String() string {
	steps := make([]string, len(p))
	for i, s := range p {
		steps[i] = s.name
		if s.name == "" {
			steps[i] = fmt.Sprintf("[%d]", s.index)
		}
	}
	return "[" + strings.Join(steps, ", ") + "]"
}

// find returns the value at the path. It returns false if the item has no such value.
func (p path) find(item Item) (Value, bool) {
	v := Value{Type: TypeMap, Map: item}
	for _, s := range p {
		switch {
		case s.name != "" && v.Type == TypeMap:
			next, ok := v.Map[s.name]
			if !ok {
				return Value{}, false
			}
			v = next
		case s.name == "" && v.Type == TypeList && s.index < len(v.List):
			v = v.List[s.index]
		default:
			return Value{}, false
		}
	}
	return v, true
}

// checkApart refuses paths that can't be used together, because one is a part of the other, or
// because they use the same value as a map and as a list.
func checkApart(paths []path) {
	for j, two := range paths {
		for _, one := range paths[:j] {
			i := 0
			for i < len(one) && i < len(two) && one[i] == two[i] {
				i++
			}
			switch {
			case i == len(one) || i == len(two):
				panic(invalidf("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %v, path two: %v", one, two))
			case (one[i].name == "") != (two[i].name == ""):
				panic(invalidf("Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %v, path two: %v", one, two))
			}
		}
	}
}

// projection is the list of paths whose values a ProjectionExpression, or UPDATED_OLD and
// UPDATED_NEW, return.
type projection []path

// bindProjection parses and binds a ProjectionExpression.
func bindProjection(source string, s *scope) (p projection, err error) {
	defer catch(&err)
	nodes, err := parseProjection(source)
	if err != nil {
		return nil, err
	}
	b := binder{scope: s}
	for _, n := range nodes {
		b.precheck(n)
	}
	for _, n := range nodes {
		p = append(p, b.path(n))
	}
	checkApart(p)
	return p, nil
}

// of returns the part of the item at the projection's paths. Maps keep their structure, and lists
// have no gaps.
func (p projection) of(item Item) Item {
	out := projectMap(item, p)
	if out == nil {
		out = map[string]Value{}
	}
	return out
}

func projectMap(m map[string]Value, paths projection) map[string]Value {
	var out map[string]Value
	for _, name := range firstSteps(paths) {
		v, ok := m[name.name]
		if !ok {
			continue
		}
		if v, ok = project(v, paths.below(name)); ok {
			if out == nil {
				out = map[string]Value{}
			}
			out[name.name] = v
		}
	}
	return out
}

func project(v Value, paths projection) (Value, bool) {
	switch {
	case len(paths[0]) == 0:
		return v, true
	case v.Type == TypeMap && paths[0][0].name != "":
		m := projectMap(v.Map, paths)
		return Value{Type: TypeMap, Map: m}, m != nil
	case v.Type == TypeList && paths[0][0].name == "":
		out := Value{Type: TypeList}
		indexes := firstSteps(paths)
		slices.SortFunc(indexes, func(a, b step) int { return a.index - b.index })
		for _, i := range indexes {
			if i.index >= len(v.List) {
				continue
			}
			if e, ok := project(v.List[i.index], paths.below(i)); ok {
				out.List = append(out.List, e)
			}
		}
		return out, out.List != nil
	}
	return Value{}, false
}

// firstSteps returns the first steps of the paths without repetitions, in the order of the paths.
func firstSteps(paths projection) []step {
	var steps []step
	for _, p := range paths {
		if !slices.Contains(steps, p[0]) {
			steps = append(steps, p[0])
		}
	}
	return steps
}

// below returns the remainders of the paths that begin with the step.
func (p projection) below(first step) projection {
	var out projection
	for _, one := range p {
		if one[0] == first {
			out = append(out, one[1:])
		}
	}
	return out
}

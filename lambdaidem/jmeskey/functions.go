package jmeskey

import (
	"errors"
	"fmt"

	"github.com/jmespath/go-jmespath"
)

// function says whether an expression may call a function of JMESPath, and which arguments are
// allowed.
type function struct {
	refused  string     // why the function is rejected; empty if it is allowed
	boolean  bool       // the function always returns true or false
	takes    []position // for each argument, how the function uses it; see position and samePosition
	variadic bool       // the last argument may be repeated
}

// samePosition marks an argument whose value becomes the function's result or a part of it, such as
// both arguments of not_null(a, b). The argument's position is that of the call: if the call is the
// result of the expression, the argument is checked as the result too.
const samePosition position = -1

// Reasons for rejecting functions. An error text consists of "the function", the function's
// name and the reason.
const (
	onNumbers = "knows no numbers but float64, and numbers are their texts here"
	unordered = "takes the members of an object in another order each time"
)

// functions are the functions of JMESPath by name.
var functions = map[string]function{
	"contains":    {boolean: true, takes: []position{insideOf, comparedTo}},
	"ends_with":   {boolean: true, takes: []position{insideOf, comparedTo}},
	"starts_with": {boolean: true, takes: []position{insideOf, comparedTo}},
	"length":      {takes: []position{insideOf}},
	"map":         {takes: []position{samePosition, insideOf}},
	"not_null":    {takes: []position{samePosition}, variadic: true},
	"reverse":     {takes: []position{insideOf}},
	"to_array":    {takes: []position{samePosition}},

	"abs":       {refused: onNumbers},
	"avg":       {refused: onNumbers},
	"ceil":      {refused: onNumbers},
	"floor":     {refused: onNumbers},
	"max":       {refused: onNumbers},
	"max_by":    {refused: onNumbers},
	"min":       {refused: onNumbers},
	"min_by":    {refused: onNumbers},
	"sort":      {refused: onNumbers},
	"sort_by":   {refused: onNumbers},
	"sum":       {refused: onNumbers},
	"to_number": {refused: onNumbers},
	"type":      {refused: onNumbers},
	"keys":      {refused: unordered},
	"values":    {refused: unordered},
	"join":      {refused: "makes one text of different parts; write [a, b]"},
	"to_string": {refused: "makes a text of what is missing; a number is its own text without it"},
	"merge":     {refused: "panics on what is no object, and lets one member hide another"},
}

// checkCall returns an error if n, which is a call of a function, can't be part of a key's
// expression: if the function is unknown or refused, or if an argument is wrong. pos says how the
// rest of the expression uses the call's value.
func (n node) checkCall(pos position) error {
	name := n.name()
	f, known := functions[name]
	switch {
	case !known:
		return fmt.Errorf("there is no function %q", name)
	case f.refused != "":
		return fmt.Errorf("the function %s %s", name, f.refused)
	}
	args := n.children()
	if len(args) < len(f.takes) || len(args) > len(f.takes) && !f.variadic {
		return fmt.Errorf("the function %s has %d arguments; it takes %d", name, len(args), len(f.takes))
	}
	if name == "map" {
		if args[0].kind() != int(jmespath.ASTExpRef) {
			return fmt.Errorf(`the first argument of map must be an expression: "&" and what to take of each element`)
		}
		args[0] = args[0].children()[0]
	}
	switch {
	case name == "contains" && !args[1].isLiteral(): // contains compares like ==, and panics on two lists
		return errors.New("the function contains looks for a text, true, false or null alone: numbers are their texts here")
	case (name == "starts_with" || name == "ends_with") && args[1].isLiteral() && !args[1].isText():
		return fmt.Errorf("the function %s looks for a text alone", name)
	}
	for i, arg := range args {
		takes := f.takes[min(i, len(f.takes)-1)]
		if takes == samePosition {
			takes = pos
		}
		if err := arg.check(takes); err != nil {
			return err
		}
	}
	return nil
}

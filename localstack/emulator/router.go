package emulator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// target is a route and the function behind it.
type target struct {
	route template.Route
	pool  *pool
}

// router chooses the route of a request as API Gateway does: a full match
// before a greedy one ({name+}), a literal segment before a parameter, a method
// before ANY, and $default last ("Routes for HTTP APIs").
type router struct {
	targets []target // the most specific one first
}

func (r *router) add(t target) error {
	for _, other := range r.targets {
		if other.route.Key() == t.route.Key() {
			return fmt.Errorf("route %s is given twice, by %s and %s", t.route.Key(), other.pool.function.LogicalID, t.pool.function.LogicalID)
		}
	}
	r.targets = append(r.targets, t)
	slices.SortStableFunc(r.targets, func(a, b target) int {
		return cmp.Or(
			slices.Compare(specificity(a.route), specificity(b.route)),
			cmp.Compare(a.route.Key(), b.route.Key()),
		)
	})
	return nil
}

// specificity sorts routes: what is smaller is tried first.
func specificity(route template.Route) []int {
	const literal, parameter, greedy, anything = 0, 1, 2, 3
	if route.Path == "" {
		return []int{anything}
	}
	segments := strings.Split(route.Path, "/")
	class := literal
	if strings.HasSuffix(route.Path, "+}") {
		class = greedy
	}
	// The class of the whole path first, then segment by segment.
	order := []int{class}
	for _, segment := range segments {
		switch {
		case strings.HasSuffix(segment, "+}"):
			order = append(order, greedy)
		case strings.HasPrefix(segment, "{"):
			order = append(order, parameter)
		default:
			order = append(order, literal)
		}
	}
	if route.Method == "ANY" {
		return append(order, 1)
	}
	return append(order, 0)
}

// find returns the route for a method and a path and its path parameters.
func (r *router) find(method, path string) (target, map[string]string, bool) {
	for _, t := range r.targets {
		if t.route.Path == "" {
			return t, nil, true
		}
		if t.route.Method != "ANY" && t.route.Method != method {
			continue
		}
		if parameters, ok := match(t.route.Path, path); ok {
			return t, parameters, true
		}
	}
	return target{}, nil, false
}

// match compares a path with a route's, segment by segment.
func match(pattern, path string) (map[string]string, bool) {
	wanted, given := strings.Split(pattern, "/"), strings.Split(path, "/")
	parameters := map[string]string{}
	for i, segment := range wanted {
		name, isParameter := strings.CutPrefix(segment, "{")
		name = strings.TrimSuffix(name, "}")
		if greedy, isGreedy := strings.CutSuffix(name, "+"); isParameter && isGreedy {
			if i >= len(given) {
				return nil, false
			}
			parameters[greedy] = strings.Join(given[i:], "/")
			return parameters, parameters[greedy] != ""
		}
		switch {
		case i >= len(given):
			return nil, false
		case isParameter && given[i] != "":
			parameters[name] = given[i]
		case segment != given[i]:
			return nil, false
		}
	}
	return parameters, len(wanted) == len(given)
}

package window

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// stepsIn returns the names of the steps whose results a request to DynamoDB stores, sorted. It
// returns none if they are encrypted.
func stepsIn(body []byte) []string {
	var request struct{ ExpressionAttributeValues recordItem }
	if json.Unmarshal(body, &request) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(request.ExpressionAttributeValues[":steps"].M))
}

// without returns the names that are not among the others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// resultsOf names the results of steps, or returns "" if there are none.
func resultsOf(steps []string) string {
	switch len(steps) {
	case 0:
		return ""
	case 1:
		return "the result of the step " + steps[0]
	}
	last := len(steps) - 1
	return "the results of the steps " + strings.Join(steps[:last], ", ") + " and " + steps[last]
}

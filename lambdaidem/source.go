package lambdaidem

import (
	"maps"
	"slices"
)

// source describes one kind of event source, such as SQS.
type source[E, M any] struct {
	list func(E) []M        // returns the messages of an event
	read func(E, M) message // converts a message of an event to the common type
	// limitedRetries reports whether Lambda retries a failed message only a limited
	// number of times. If so, a message whose record is in progress waits until the other
	// attempt has ended, because a failure would use up a retry.
	limitedRetries bool
}

// listByList returns the messages of an event that has a list for each partition or queue, in a map.
// The lists come in the order of their names, because the order of a map is random.
func listByList[M any](lists map[string][]M) []M {
	var all []M
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		all = append(all, lists[name]...)
	}
	return all
}

// jsonText returns the JSON of v, or the text of the error if v can't be encoded.
func jsonText(v any) string {
	text, err := toJSON(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

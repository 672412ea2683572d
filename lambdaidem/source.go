package lambdaidem

import (
	"maps"
	"slices"
)

// source describes one kind of event source, such as SQS.
type source[E, M any] struct {
	list    func(E) []M        // returns the messages of an event
	convert func(E, M) message // converts a message of an event to the common type
	// limitedRetries is true for every source except SQS, which delivers a failed message again
	// after its visibility timeout. Lambda gives up on a message of any other source after a number
	// of retries, or when the message expires. If another attempt is handling a message, a new
	// delivery of the message therefore waits until that attempt has ended. Failing at once could
	// use up the retries.
	limitedRetries bool
}

// listByList returns the messages of an event in one slice, partition by partition or queue by
// queue. The parameter lists maps the name of each partition or queue to its messages. The names
// are visited in sorted order, because the order of a map is random.
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

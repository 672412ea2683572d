package dynamostore

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// foreign returns a foreignItemError, which says why the item is not a valid record and which
// attributes it has.
func foreign(reason string, attrs attributes) error {
	return &foreignItemError{reason: reason + "; it has " + attributeNames(attrs)}
}

// foreignItemError is the error for an item that is damaged, or that another tool or a
// store with other attribute names wrote.
type foreignItemError struct{ reason string }

func (e *foreignItemError) Error() string {
	return "the item under this id is not a record of this toolkit, or is damaged: " + e.reason +
		"; if the table's attributes are renamed, give this store the names that its functions have" +
		"; otherwise don't touch it, because a retry of its request may run a second time, and see docs/operate.md, \"An answer is lost\""
}

func isForeign(err error) bool {
	_, ok := errors.AsType[*foreignItemError](err)
	return ok
}

func attributeNames(attrs map[string]types.AttributeValue) string {
	if len(attrs) == 0 {
		return "no attributes"
	}
	return "the attributes " + strings.Join(slices.Sorted(maps.Keys(attrs)), ", ")
}

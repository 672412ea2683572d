package dynamostore

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// incomplete returns an error if the write lacks an item, key, expression or condition that its
// kind needs, or has an attribute value that can't be sent. The SDK would refuse to send such a
// write, or would send an incomplete one.
func (w *Write) incomplete() error {
	switch {
	case w.kind == aPut && len(w.item) == 0:
		return errors.New("it has no item")
	case w.kind != aPut && len(w.key) == 0:
		return errors.New("it has no key")
	case w.kind == anUpdate && aws.ToString(w.update) == "":
		return errors.New("it has no update expression")
	case w.kind == aCheck && w.condition == nil:
		return errors.New("it has no condition")
	case w.condition != nil && *w.condition == "":
		return errors.New("its condition is empty")
	}
	for _, attrs := range []attributes{w.item, w.key, w.values} {
		for name, v := range attrs {
			switch v.(type) {
			case nil:
				return fmt.Errorf("%s has a nil value", name)
			case *types.UnknownUnionMember:
				return fmt.Errorf("%s has a value of an unknown type", name)
			}
		}
	}
	return nil
}

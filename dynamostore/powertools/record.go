package powertools

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The states of a record. Powertools has a third state, EXPIRED, which it never stores.
const (
	statusInProgress = "INPROGRESS"
	statusCompleted  = "COMPLETED"
)

// record is a record that Powertools has stored.
type record struct {
	id, table           string
	status              string
	expiration          int64                // epoch seconds
	inProgressExpires   int64                // epoch milliseconds
	hasInProgressExpiry bool                 // false if the old function did not register its Lambda context with Powertools
	data                types.AttributeValue // nil if there is none
	validation          string               // "" if there is none
}

// String names the record in errors.
func (rec *record) String() string { return fmt.Sprintf("%q of the table %s", rec.id, rec.table) }

func (rec *record) running() bool { return rec.status == statusInProgress }

// hasDied reports whether the attempt of a record in progress has died: the deadline of its
// invocation was more than maxSkew ago. If the record does not have that deadline, hasDied returns
// false: the attempt then counts as running until the record expires, as in Powertools.
func (rec *record) hasDied(now time.Time) bool {
	return rec.hasInProgressExpiry && time.UnixMilli(rec.inProgressExpires).Add(maxSkew).Before(now)
}

// hasExpired reports whether the record has expired. A record is valid until the end of its last
// second, as in Powertools. Unlike in Powertools, a record in progress does not expire before the
// invocation of its attempt has ended, because the attempt may still be running.
func (rec *record) hasExpired(now time.Time) bool {
	mayRun := rec.running() && rec.hasInProgressExpiry && !rec.hasDied(now)
	return rec.expiration < now.Unix() && !mayRun
}

// take decodes an item. It returns an error if the item is not a Powertools record.
func (rec *record) take(item map[string]types.AttributeValue, o *Options) error {
	if _, ok := item["token"]; ok { // dynamostore's fencing token, an attribute that can't be renamed
		return errors.New("this toolkit has written it, not Powertools: check the selected data and Selection.ID")
	}
	status, ok := item[o.StatusAttribute].(*types.AttributeValueMemberS)
	if !ok || status.Value != statusInProgress && status.Value != statusCompleted {
		return fmt.Errorf("its attribute %q is not INPROGRESS or COMPLETED, so Powertools has not written it", o.StatusAttribute)
	}
	rec.status = status.Value
	if rec.expiration, ok = integer(item[o.ExpirationAttribute]); !ok {
		return fmt.Errorf("its attribute %q is not a number of epoch seconds, so Powertools has not written it", o.ExpirationAttribute)
	}
	if end, there := item[o.InProgressExpirationAttribute]; there {
		if rec.inProgressExpires, rec.hasInProgressExpiry = integer(end); !rec.hasInProgressExpiry {
			return fmt.Errorf("its attribute %q is not a number of epoch milliseconds, so Powertools has not written it", o.InProgressExpirationAttribute)
		}
	}
	rec.data = item[o.DataAttribute]
	if hash, ok := item[o.ValidationAttribute].(*types.AttributeValueMemberS); ok {
		rec.validation = hash.Value
	}
	return nil
}

// integer returns the value of a number attribute. It returns false if v is not a number, or if the
// number is not an integer that fits in 64 bits.
func integer(v types.AttributeValue) (int64, bool) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	return i, err == nil
}

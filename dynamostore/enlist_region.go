package dynamostore

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

// checkRegion returns an error if the write's table is in another Region or account than the store,
// because all tables of a transaction must be in one Region and account. If the store's table is
// given by its name, its account is unknown, and checkRegion compares only the Region.
func (w *Write) checkRegion(s *Store) error {
	if !arn.IsARN(aws.ToString(w.table)) {
		return nil // a name refers to a table in the client's account and Region
	}
	table, _ := arn.Parse(*w.table) // can't fail after IsARN
	if region := s.wire.SDK().Options().Region; table.Region != region {
		return fmt.Errorf("its table is in Region %s; a transaction takes tables of one account and Region, and the store's is %s", table.Region, region)
	}
	if own, err := arn.Parse(s.table); err == nil && own.AccountID != table.AccountID {
		return fmt.Errorf("its table is of account %s; a transaction takes tables of one account and Region, and the record's is of %s", table.AccountID, own.AccountID)
	}
	return nil
}

// tableName returns the name of a table that is given by its name or its ARN. It returns ""
// if table is nil.
func tableName(table *string) string {
	name := aws.ToString(table)
	if !arn.IsARN(name) {
		return name
	}
	parsed, _ := arn.Parse(name) // can't fail after IsARN
	return strings.TrimPrefix(parsed.Resource, "table/")
}

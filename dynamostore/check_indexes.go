package dynamostore

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// checkIndexes returns the problems with the table's secondary indexes. If a record has an
// attribute that is a key of an index, DynamoDB accepts the record only if the attribute's value
// has the type of the key and is not empty. Otherwise it refuses the write with a
// ValidationException. checkIndexes returns a problem for each index key that can cause such a
// refusal.
//
// An index whose key is not an attribute of records is no problem, because it does not include
// records. checkIndexes skips Options.LeaseIndex, which checkLeaseIndex checks.
func checkIndexes(table string, d *types.TableDescription, o *Options) TableProblems {
	var problems TableProblems
	columns := o.layout()
	check := func(index *string, key []types.KeySchemaElement, remedy string) {
		for _, k := range key {
			name := aws.ToString(k.AttributeName)
			is := attributeType(d, name)
			if writes, conflict := columns.conflict(name, is); conflict {
				problems = append(problems, &TableProblem{Code: IndexConflict, Detail: fmt.Sprintf(
					"index %q of table %q has the %s key %q of type %s, and records have an attribute of that name with values of type %s: "+
						"DynamoDB refuses to write them; %s", aws.ToString(index), table, k.KeyType, name, is, writes, remedy)})
			}
		}
	}
	for _, index := range d.GlobalSecondaryIndexes {
		if o.LeaseIndex == "" || aws.ToString(index.IndexName) != o.LeaseIndex {
			check(index.IndexName, index.KeySchema, "delete the index, or key it on an attribute that no record has")
		}
	}
	for _, index := range d.LocalSecondaryIndexes {
		check(index.IndexName, index.KeySchema, "a local index can't be deleted, so rename the attribute by an option, or make another table")
	}
	return problems
}

// conflict reports whether DynamoDB would refuse the store's writes if an index had the named
// attribute as a key of the given type. DynamoDB refuses a value that has another type than the key
// or is empty. conflict also returns the kinds of values that the store writes to the attribute, or
// "" if the store does not write the attribute.
func (l *layout) conflict(name string, key types.ScalarAttributeType) (writes kinds, conflict bool) {
	if name == attrPart { // the store's items for the parts of a large answer have a map in this attribute
		return kindMap, true
	}
	for i := range itemAttributes {
		if l[i].name == name {
			writes = itemAttributes[i].kinds
			return writes, writes != kinds(key)
		}
	}
	return "", false
}

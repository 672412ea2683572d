package template

import (
	"crypto/rand"
	"testing"
)

// TablesForTest creates the tables of a template file with random names, for use by one test. It
// returns the names by the logical IDs of the tables. optFns may set [Options], such as values
// of the template's parameters. On an error, TablesForTest fails the test.
//
// It reads only the tables, so a parameter that no table uses needs no value.
func TablesForTest(t testing.TB, api TableAPI, path string, optFns ...func(*Options)) map[string]string {
	t.Helper()
	var options Options
	for _, fn := range optFns {
		fn(&options)
	}
	options.tablesOnly = true
	deployed, err := Read(path, options)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for i := range deployed.Tables {
		table := &deployed.Tables[i]
		table.Name = "test-" + table.LogicalID + "-" + rand.Text()
		names[table.LogicalID] = table.Name
	}
	if err := CreateTables(t.Context(), api, deployed.Tables); err != nil {
		t.Fatal(err)
	}
	return names
}

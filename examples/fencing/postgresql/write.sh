#!/bin/sh
# Writes the report: write.sh FENCE TEXT
exec psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --set=fence="$1" --set=text="$2" <<'SQL'
update report set text = :'text', fence = :'fence' where name = 'daily';
SQL

create table report (
    name  text    primary key,
    text  text    not null,
    fence integer not null
);

create trigger fence before update on report when new.fence < old.fence begin
    select raise(abort, 'this fence is older than the one in the table');
end;

insert into report values ('daily', 'nothing yet', 0);

create table report (
    name  text   primary key,
    text  text   not null,
    fence bigint not null
);

create function refuse_old_fence() returns trigger language plpgsql as $$
begin
    if new.fence < old.fence then
        raise exception 'fence % is older than %', new.fence, old.fence;
    end if;
    return new;
end $$;

create trigger fence before update on report
    for each row execute function refuse_old_fence();

insert into report values ('daily', 'nothing yet', 0);

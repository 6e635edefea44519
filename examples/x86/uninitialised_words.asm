; Words that nobody has set go around and come back, and are in one order whether they have a sign or not.
; expect: sc holds (explicit: undecided), tso holds (explicit: undecided), pso holds (explicit: undecided)

begin unsafe_prop
    eip[$t] = lost
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
        mov eax, ecx
        add eax, edx
        sub eax, edx
        cmp eax, ecx
        jne lost
        cmp ecx, edx
        jae done
        cmp edx, ecx
        jbe lost
done:   jmp done
lost:   jmp lost
end thread_code
